"""The golden cases: command lines, one a line, run one after the other on the files of a folder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """What is run: command lines without the program's name, in a copy of a folder."""

    name: str
    folder: str
    steps: tuple[str, ...]


# What the commands say and write. Audits are small: two or three orders, a few cases judged.
MAPPED = "--map client=client_id,time=ts,y=decision,yes=granted,cf=why_"
QUICK = "--orders 2 --judged 20 --maps 0 --no-compare --no-defences"
SHOWN = {
    # certify: every kind of answer, with proofs that verify accepts
    "certify-labels": "certify labels.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl labels.jsonl --verdicts v.csv --points points.csv",
    "certify-l1": "certify l1.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl l1.jsonl --verdicts v.csv --points points.csv",
    "certify-l2": "certify l2.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl l2.jsonl --verdicts v.csv --points points.csv",
    "certify-linf": "certify linf.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl linf.jsonl --verdicts v.csv --points points.csv",
    "certify-weighted": "certify weighted.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl weighted.jsonl --verdicts v.csv --points points.csv",
    "certify-known": "certify known.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl known.jsonl --verdicts v.csv --points points.csv",
    "certify-unlabelled": "certify unlabelled.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl unlabelled.jsonl --verdicts v.csv --points points.csv",
    "certify-slack": "certify slack.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl slack.jsonl --verdicts v.csv --points points.csv",
    "certify-rounded": "certify rounded.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl rounded.jsonl --verdicts v.csv --points points.csv",
    "certify-several": "certify several.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl several.jsonl --verdicts v.csv --points points.csv",
    "certify-several-parquet": "certify several.parquet points.csv -o v.csv",
    "certify-bare": "certify bare.csv points.csv -o v.csv",
    "certify-valid": "certify bare.csv points.csv --slack any -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl bare.csv --slack any --verdicts v.csv --points points.csv",
    "certify-said": "certify bare.csv few.csv --distance l1 --slack 1 --tolerance 0.001 -o v.csv --json",
    "certify-robust": "certify robust.jsonl points.csv -o v.csv",
    "certify-robust-paper": "certify robust.jsonl points.csv --robust paper -o v.csv",
    "certify-robust-perspective": "certify robust.jsonl points.csv --robust perspective -o v.csv",
    "certify-robust-exact": "certify robust.jsonl few.csv --robust exact -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl robust.jsonl --verdicts v.csv --points few.csv",
    "certify-robust-same": "certify robust-same.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl robust-same.jsonl --verdicts v.csv --points points.csv",
    "certify-secret": "certify secret.jsonl points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl secret.jsonl --verdicts v.csv --points points.csv",
    "certify-mixed": "certify mixed.jsonl mixed-points.csv -o v.csv --proofs p.jsonl\n"
    "verify p.jsonl mixed.jsonl --verdicts v.csv --points mixed-points.csv",
    "certify-json": "certify l1.jsonl points.csv --json",
    "certify-jsonl-points": "certify l1.jsonl points.jsonl -o v.csv",
    "certify-parquet-points": "certify l1.jsonl points.parquet -o v.csv",
    "certify-folder": "certify l1.jsonl people -o verdicts --proofs proofs\n"
    "verify proofs l1.jsonl --verdicts verdicts --points people\n"
    "certify l1.jsonl people -o verdicts --proofs proofs --json",
    "certify-mapped": f"certify clients.csv few.csv {MAPPED} --distance l1 -o v.csv",
    "certify-cut": "certify bad/cut.jsonl few.csv --json",
    "verify-json": "certify l1.jsonl few.csv --proofs p.jsonl --json\nverify p.jsonl l1.jsonl --points few.csv --json",
    # maps
    "map-flat": "map flat.jsonl --size 31x11",
    "map-flat-json": "map flat.jsonl --size 21x11 --range -3:3,-3:3 --json",
    "map-svg": "map flat.jsonl --size 31x31 -o map.svg",
    "map-slice": "map l1.jsonl --features income,age --at at.json --size 31x11 --range -3:3,-3:3",
    "map-slice-json": "map l1.jsonl --features 0,2 --size 15x9 --json",
    "map-robust": "map robust-flat.jsonl --size 15x9 --json",
    "map-robust-paper": "map robust-flat.jsonl --robust paper --size 15x9 --json",
    "map-robust-exact": "map robust-flat.jsonl --robust exact --size 15x9 --json",
    "map-robust-slice": "map robust.jsonl --features income,debts --size 15x9 --json",
    "map-linf": "map linf.jsonl --features income,debts --size 15x9 --json",
    "map-secret": "map secret.jsonl --features income,debts --size 15x9 --json",
    "map-slack": "map slack.jsonl --features income,debts --size 15x9 --json",
    "map-rounded": "map rounded.jsonl --features income,debts --size 15x9 --json",
    "map-weighted": "map weighted.jsonl --features income,age --size 15x9 --json",
    "map-unlabelled": "map unlabelled.jsonl --features income,debts --size 15x9 --json",
    "map-valid": "map bare.csv --slack any --features income,debts --size 15x9 --json",
    "map-mixed": "map mixed.jsonl --features income,age --size 15x9 --json",
    "map-l2": "map l2.jsonl --features income,debts --size 31x11",
    # audits
    "audit-l1": "audit model.json --data cases.csv --service l1 --orders 3 --judged 20 --maps 1 "
    "--report a.html --report a.md --report a.json --report a.xml --proofs proofs\nverify proofs --report a.json",
    "audit-json": f"audit model.json --data cases.csv --service l2 --json {QUICK}",
    "audit-standardized": f"audit model.csv --data cases.csv --service linf --service labels --standardize {QUICK}",
    "audit-robust": f"audit model.json --data cases.csv --service 'l1; robust=linf:0.25' --answers 2,4 --proofs proofs {QUICK}",
    "audit-secret": f"audit model.json --data cases.csv --service 'l1; robust=linf:0.25; secret' --answers 2,4 {QUICK}",
    "audit-rounded": f"audit model.json --data cases.csv --service 'l1; rounded:2' --answers 2,4 --proofs proofs {QUICK}",
    "audit-one-sided": f"audit logistic.json --data cases.csv --service 'l1; one-sided' --threshold 0.5 {QUICK}",
    "audit-mixed": f"audit mixed.json --data mixed.csv --service l1 --answers 2,8 --proofs proofs {QUICK}",
    "audit-raw": f"audit scorecard.csv --data raw.csv --service l1 --answers 2,8 --report a.md {QUICK}",
    "audit-defences": "audit model.json --data cases.csv --service l1 --orders 2 --judged 20 --maps 0 --no-compare "
    "--defences --answers 2,4",
    "audit-policy": "audit model.json --data cases.csv --policy policy.toml --report a.xml",
    "audit-gate": f"audit model.json --data cases.csv --service l1 --fail-on 'determined@3>1%' --fail-on 'quota<1' {QUICK}",
    "audit-policy-gate": "audit model.json --data cases.csv --policy policy.toml --fail-on 'answers-to-extract<20' "
    "--report a.xml --report a.md",
    "audit-all-cases": f"audit model.json --data people --service l1 --all-cases --answers 2,3 {QUICK}",
    "audit-classes": "audit classes.json --data class-cases.csv --report a.md --report a.json --report a.html",
    "audit-classes-json": "audit classes.json --data class-cases.csv --service l2 --no-compare --standardize --json",
    # monitor
    "monitor": f"monitor clients.csv {MAPPED} --distance l1",
    "monitor-json": f"monitor clients.csv {MAPPED} --distance l1 "
    "--model model.json --json",
    "monitor-gate": f"monitor clients.csv {MAPPED} --distance l1 "
    "--by none --fail-on recoverable --reference few.csv",
    "monitor-quota": f"monitor clients.csv {MAPPED} --distance l1 "
    "--quota 20 --detail 2 --fail-on alarm",
    "monitor-labels": "monitor labels.jsonl --by none",
    # logs
    "log-check": "log check l1.jsonl l2.jsonl slack.jsonl several.parquet",
    "log-check-json": "log check l1.jsonl robust.jsonl unlabelled.jsonl mixed.jsonl --json",
    "log-check-no-fit": "log check --no-fit undeclared.jsonl bare.csv",
    "log-show": "log show several.jsonl",
    "log-show-rows": "log show l1.jsonl --rows 10:14\nlog show mixed.jsonl --rows -1\nlog show l1.jsonl -n 2 --json",
    "log-show-mapped": "log show records.jsonl --map x=input,cf=cf,y=decision,yes=granted,client=who",
    "log-convert": "log convert several.jsonl several.csv\nlog convert several.csv again.jsonl\n"
    "log convert bare.csv told.jsonl --distance l1 --slack 1",
    "log-convert-parquet": "log convert l1.jsonl l1.parquet\nlog convert l1.parquet back.jsonl --json",
    "log-convert-sqlite": "log convert l1.jsonl run.sqlite\nlog check run.sqlite\nlog convert run.sqlite back.jsonl",
    "log-convert-dice": "log convert l1.jsonl dice.json\nlog show dice.json -n 3",
    "log-merge": "log merge l1.jsonl linf.jsonl -o both.jsonl\ncertify both.jsonl points.csv -o v.csv",
    # models, extraction, diagnosis
    "model-inspect": "model inspect model.json\nmodel inspect model.csv --json",
    "model-inspect-threshold": "model inspect logistic.json --threshold 0.9 -o cut.json\nmodel inspect cut.json",
    "model-inspect-categories": "model inspect scorecard.csv",
    "model-inspect-classes": "model inspect classes.json\nmodel inspect classes.json --json",
    "extract-l1": "extract model.json --distance l1 -o found.json --log run.jsonl\ncertify run.jsonl few.csv -o v.csv",
    "extract-l2": "extract model.json --distance l2 --data cases.csv",
    "extract-linf-json": "extract model.json --distance linf --json",
    "extract-robust": "extract model.json --distance l1 --robustness l2 --radius 0.25",
    "extract-secret": "extract model.json --distance l1 --robustness linf --radius 0.25 --secret-radius --seed 5",
    "extract-paper": "extract model.json --distance l1 --strategy paper --ties random",
    "extract-labels": "extract model.json --labels-only --accuracy 0.01",
    "extract-mixed": "extract mixed.json --distance l1 --data mixed.csv",
    "diagnose": "diagnose model.json --distance l1",
    "diagnose-rounded": "diagnose model.json --distance l1 --degrade rounded:2 -n 12 --json",
    "probe-dry": "probe endpoint.toml --budget 40 --dry-run\nprobe endpoint.toml --dry-run --json",
    # help
    "help": "--help",
    "version": "--version",
} | {
    f"help-{name.replace(' ', '-')}": f"{name} --help"
    for name in (
        "demo", "audit", "monitor", "extract", "diagnose", "probe", "serve", "certify", "map", "verify", "model inspect", "log",
        "log check", "log show", "log convert", "log merge",
    )
}  # fmt: skip
BAD = {
    # points
    "points-nan": "certify l1.jsonl bad/nan.csv -o v.csv",
    "points-infinite": "certify l1.jsonl bad/infinite.csv",
    "points-word": "certify l1.jsonl bad/word.csv",
    "points-short": "certify l1.jsonl bad/short.csv",
    "points-missing": "certify l1.jsonl bad/missing.csv",
    "points-twice": "certify l1.jsonl bad/twice.csv",
    "points-comma": "certify l1.jsonl bad/comma.csv",
    "points-latin": "certify l1.jsonl bad/latin.csv",
    "points-gone": "certify l1.jsonl gone.csv",
    "points-exists": "certify l1.jsonl few.csv -o points.csv",
    "points-wrong-features": "certify mixed.jsonl few.csv",
    "folder-nowhere": "certify l1.jsonl people",
    # logs
    "log-nan": "certify bad/nan.jsonl few.csv",
    "log-width": "log check bad/width.jsonl",
    "log-label": "certify bad/label.jsonl few.csv",
    "log-key": "log show bad/key.jsonl",
    "log-headless": "certify bad/headless.jsonl few.csv",
    "log-future": "certify bad/future.jsonl few.csv",
    "log-empty": "certify bad/empty.jsonl few.csv",
    "log-ending": "certify points.txt few.csv",
    "log-run": "log check bad/run.sqlite",
    "log-map": "monitor clients.csv --map client=nobody --distance l1",
    "log-several-one-run": "log convert several.jsonl several.sqlite",
    # contradictions
    "clash-labels": "certify bad/labels-clash.jsonl few.csv -o v.csv",
    "clash-answers": "certify bad/answers-clash.jsonl few.csv",
    "clash-check": "log check bad/labels-clash.jsonl",
    "clash-map": "map bad/labels-clash.jsonl --features income,age",
    "clash-monitor": "monitor bad/labels-clash.jsonl --by none --reference few.csv",
    "clash-undeclared": "certify undeclared.jsonl mixed-points.csv",
    # proofs
    "proof-turned": "verify bad/turned.jsonl l1.jsonl",
    "proof-other-log": "verify bad/proofs.jsonl linf.jsonl",
    "proof-missing": "verify bad/fewer.jsonl l1.jsonl --points few.csv\ncertify l1.jsonl few.csv -o v.csv\n"
    "verify bad/fewer.jsonl l1.jsonl --verdicts v.csv --points few.csv",
    "proof-other-point": "verify bad/proofs.jsonl l1.jsonl --points cases.csv",
    "proof-words": "verify bad/words.jsonl l1.jsonl",
    "proof-no-log": "verify bad/proofs.jsonl",
    # models, audits
    "model-zero": "model inspect bad/zero.json",
    "model-offsetless": "model inspect bad/offsetless.json",
    "model-entry": "audit bad/entry.json --data cases.csv",
    "model-words": "extract bad/words.json --distance l1",
    "model-not-json": "model inspect bad/not.json",
    "model-huge": "model inspect bad/huge.json",
    "model-pickle": "model inspect bad/model.pkl",
    "model-onnx": "model inspect bad/noise.onnx",
    "model-gone": "model inspect gone.json",
    "audit-few-cases": "audit model.json --data bad/few-cases.csv --service l1",
    "audit-category": "audit scorecard.csv --data bad/category.csv --service l1",
    "audit-service": "audit model.json --data cases.csv --service l3x",
    "audit-unknown-entry": "audit model.json --data cases.csv --policy bad/unknown.toml",
    "audit-broken-policy": "audit model.json --data cases.csv --policy bad/broken.toml",
    "audit-gate-words": "audit model.json --data cases.csv --policy bad/gate.toml",
    "audit-report-ending": "audit model.json --data cases.csv --service l1 --report a.pdf",
    "audit-classes-gate": "audit classes.json --data class-cases.csv --fail-on 'quota<10'",
    "audit-workers": "audit model.json --data cases.csv --workers 2",
    "demo-seed": "demo --seed -1",
    # services
    "extract-budget": "extract model.json --distance l1 --budget 2 --log run.jsonl",
    "extract-nothing": "extract model.json",
    "diagnose-radius": "diagnose model.json --distance l1 --radius 0.1",
    "probe-unauthorized": "probe endpoint.toml --budget 5 --run run.sqlite",
    "probe-homeless": "probe bad/homeless.toml --budget 5 --dry-run",
    "probe-budgetless": "probe endpoint.toml",
    "serve-nothing": "serve model.json",
    "serve-outside": "serve model.json --distance l1 --host 192.0.2.1",
    # maps
    "map-features": "map l1.jsonl",
    "map-feature": "map l1.jsonl --features income,wage",
    "map-point": "map l1.jsonl --features income,age --at bad/point.json",
    "map-ending": "map flat.jsonl -o map.pdf",
    # usage
    "usage-option": "certify l1.jsonl few.csv --colour",
    "usage-command": "certfy l1.jsonl few.csv",
    "usage-missing": "certify l1.jsonl",
    "usage-tolerance": "certify l1.jsonl few.csv --tolerance 0.1",
    "usage-slack": "certify l1.jsonl few.csv --distance l1 --slack -1",
    "usage-by": "monitor l1.jsonl --by week",
    "usage-merge": "log merge l1.jsonl -o both.jsonl",
    "usage-rows": "log show l1.jsonl --rows 1:2:3",
    "terms-norm": "certify bare.csv few.csv --distance l7x",
}
PROVED = [
    "labels",
    "l1",
    "l2",
    "linf",
    "weighted",
    "known",
    "unlabelled",
    "slack",
    "rounded",
    "several",
    "robust-same",
    "secret",
]
# Old files: every later version reads and verifies them. All of these end with exit code 0 unless they say so.
OLD = {
    f"proofs-{name}": f"verify {name}.proofs.jsonl {name}.jsonl --verdicts {name}.verdicts.csv --points few.csv"
    for name in (*PROVED, "robust")
} | {
    "proofs-mixed": "verify mixed.proofs.jsonl mixed.jsonl --verdicts mixed.verdicts.csv --points mixed-points.csv",
    "proofs-valid": "verify valid.proofs.jsonl bare.csv --slack any --verdicts valid.verdicts.csv --points few.csv",
    "proofs-data-set": "verify proofs l1.jsonl --verdicts verdicts --points people",
    "audit-report": "verify audit-proofs --report audit.json\nverify audit-proofs",
    "policy": "audit model.json --data cases.csv --policy policy.toml --fail-on 'quota<1'",
    "log-formats": "log check several.jsonl several.csv several.parquet l1.sqlite l1.dice.json done.sqlite stopped.sqlite",
    "log-asked": "certify asked.jsonl few.csv -o v.csv",
    "log-parquet": "certify several.parquet few.csv -o v.csv",
    "log-sqlite": "certify l1.sqlite few.csv -o v.csv\nlog convert l1.sqlite back.jsonl",
    "log-mapped": f"monitor clients.csv {MAPPED} --distance l1 --by none",
    "run-done": "certify done.sqlite few.csv -o v.csv\nprobe --resume done.sqlite --dry-run\n"
    "probe --resume done.sqlite --authorized --model model.json",
    # The budget is spent: nothing is sent, exit code 6.
    "run-stopped": "probe --resume stopped.sqlite --dry-run --json\nprobe --resume stopped.sqlite --authorized",
    "endpoint": "probe endpoint.toml --budget 10 --dry-run",
    "model-json": "model inspect model.json\nmodel inspect logistic.json\nmodel inspect saved.json\nmodel inspect found.json",
    "model-csv": "model inspect model.csv\nmodel inspect scorecard.csv",
    "model-classes": "model inspect classes.json",
    "model-skops": "model inspect model.skops --json",
    "model-onnx": "model inspect model.onnx --json",
}  # fmt: skip
CASES = [Case(name, "inputs", tuple(steps.splitlines())) for name, steps in SHOWN.items()]
CASES += [Case(f"bad-{name}", "inputs", tuple(steps.splitlines())) for name, steps in BAD.items()]
CASES += [Case(f"old-{name}", "old", tuple(steps.splitlines())) for name, steps in OLD.items()]
