(function () {
  "use strict";
  const holder = document.getElementById("boxes");
  const details = document.getElementById("details");
  const reset = document.getElementById("reset");
  const search = document.getElementById("search");
  const width = document.documentElement.viewBox.baseVal.width;
  const margin = 10, letter = 6.7;
  const total = Number(holder.dataset.total);
  const boxes = Array.from(holder.children, (g) => {
    const tip = g.querySelector("title").textContent;
    const [rect, text] = [g.querySelector("rect"), g.querySelector("text")];
    return {
      g, rect, text, tip, name: tip.replace(/: [\d,]+ (instructions|nanoseconds) \(.*$/s, ""),
      begin: Number(g.dataset.b), width: Number(g.dataset.w), y: Number(rect.getAttribute("y")), fill: rect.getAttribute("fill"),
    };
  });

  function cut(name, pixels) {
    const room = Math.max(0, Math.floor((pixels - 6) / letter));
    if (name.length <= room) return name;
    return room < 3 ? "" : name.slice(0, room - 2) + "..";
  }

  /* Shows the boxes from `begin` on, so wide that `span` fills the picture; `at` is the box that was chosen. */
  function zoom(begin, span, at) {
    const scale = (width - 2 * margin) / span;
    for (const box of boxes) {
      const below = at && box.y > at.y && box.begin <= begin && box.begin + box.width >= begin + span;
      const shown = below || (box.begin >= begin && box.begin + box.width <= begin + span && (!at || box.y <= at.y));
      box.g.style.display = shown ? "" : "none";
      if (!shown) continue;
      const x = below ? margin : margin + (box.begin - begin) * scale;
      const pixels = below ? width - 2 * margin : Math.max(0.2, box.width * scale);
      box.rect.setAttribute("x", x.toFixed(2));
      box.rect.setAttribute("width", pixels.toFixed(2));
      box.rect.style.opacity = below ? 0.5 : 1;
      box.text.setAttribute("x", (x + 3).toFixed(2));
      box.text.textContent = cut(box.name, pixels);
    }
    reset.setAttribute("visibility", at ? "visible" : "hidden");
  }

  function find() {
    const wanted = prompt("Names that contain (a regular expression):", "");
    let pattern = null;
    try { pattern = wanted ? new RegExp(wanted) : null; } catch (error) { details.textContent = String(error); return; }
    /* Nested boxes count once. */
    const found = boxes.filter((box) => pattern && pattern.test(box.name)).sort((a, b) => a.begin - b.begin || b.width - a.width);
    let [sum, end] = [0, 0];
    for (const box of found) {
      if (box.begin >= end) [sum, end] = [sum + box.width, box.begin + box.width];
    }
    for (const box of boxes) box.rect.setAttribute("fill", found.includes(box) ? "rgb(230,0,230)" : box.fill);
    details.textContent = pattern ? `${wanted}: ${found.length} boxes, ${(100 * sum / total).toFixed(2)} % of all ${holder.dataset.unit}` : " ";
  }

  for (const box of boxes) {
    box.g.addEventListener("mouseover", () => { details.textContent = box.tip; });
    box.g.addEventListener("click", () => zoom(box.begin, box.width, box));
  }
  reset.addEventListener("click", () => zoom(0, total, null));
  search.addEventListener("click", find);
  window.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "f") { event.preventDefault(); find(); }
    if (event.key === "Escape") zoom(0, total, null);
  });
})();
