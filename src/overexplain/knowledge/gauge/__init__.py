"""Signs over a polyhedral cone: for many queries q at once, is q·w of one sign for every w in {w : g_i·w ≤ 0}?

`fit.fit_gauge(rows)` takes the cone apart once, `Gauge.decide(view, X)` answers blocks of points. Every +1, −1 and 0 it
returns rests on a bound whose rounding errors are counted (`bounds`); what floating point cannot settle comes back as open.
"""
