// The read-out: what was determined after so many answers, by slider or by pointing at the chart. It shows what the table says.
(() => {
  "use strict";
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  const byId = (id) => document.getElementById(id);
  const box = byId("readout"), table = byId("t-curve");
  if (!box || !table) return;

  const slider = byId("readout-k"), label = byId("readout-label"), out = byId("readout-out");
  const services = [...table.querySelectorAll("thead [data-service]")].map((cell) => ({ id: cell.dataset.service, name: cell.textContent }));
  const rows = [...table.tBodies[0].rows].map((row) => ({ answers: Number(row.cells[0].dataset.id), cells: [...row.cells].slice(1) }));
  const charts = [...document.querySelectorAll("svg.curve")];
  const audited = document.querySelector("svg.curve polyline.acc")?.dataset.service;
  const counted = (n) => n.toLocaleString("en-US") + (n === 1 ? " answer" : " answers");

  const line = (service, cell) => {
    const row = document.createElement("span"), name = document.createElement("bdi"), value = document.createElement("b");
    if (service.id === audited) row.className = "acc";
    name.textContent = service.name;
    const range = cell.querySelector(".note");
    value.textContent = cell.firstChild.textContent.trim().replace(" ", "\u00a0") + (range ? ` (${range.textContent})` : "");
    row.append(name, value);
    return row;
  };

  const mark = (svg, row) => {
    const edge = (name) => Number(svg.dataset[name]);
    const x = edge("left") + Math.log(row.answers) / Math.log(edge("max")) * (edge("right") - edge("left"));
    const cursor = svg.querySelector(".cur"), rule = cursor.querySelector("line");
    cursor.setAttribute("visibility", "visible");
    rule.setAttribute("x1", x);
    rule.setAttribute("x2", x);
    for (const dot of cursor.querySelectorAll("circle")) {
      const share = row.cells[services.findIndex((s) => s.id === dot.dataset.service)].dataset.value;
      dot.setAttribute("display", share === undefined ? "none" : "inline");
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", edge("top") + (1 - Number(share || 0)) * (edge("bottom") - edge("top")));
    }
  };

  const show = (position) => {
    const row = rows[position];
    slider.value = position;
    slider.setAttribute("aria-valuetext", counted(row.answers));
    label.textContent = "After " + counted(row.answers);
    out.replaceChildren(...services.map((service, k) => line(service, row.cells[k])));
    charts.forEach((svg) => mark(svg, row));
  };

  const pointed = (svg, event) => {
    const matrix = svg.getScreenCTM();
    if (!matrix) return;
    const { left, right, max } = svg.dataset;
    const at = Math.log(Number(max)) * ((event.clientX - matrix.e) / matrix.a - Number(left)) / (Number(right) - Number(left));
    const away = rows.map((row) => Math.abs(Math.log(row.answers) - at));
    show(away.indexOf(Math.min(...away)));
  };

  charts.forEach((svg) => svg.addEventListener("pointermove", (event) => pointed(svg, event)));
  slider.addEventListener("input", () => show(Number(slider.value)));
  box.hidden = false;
  show(Number(slider.value));
})();
