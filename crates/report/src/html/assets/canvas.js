// Canvas in physical pixels, sharp on every screen.
kt.fit = (canvas, height) => {
  const width = canvas.clientWidth || canvas.parentElement.clientWidth;
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  canvas.style.height = height + "px";
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const draw = canvas.getContext("2d");
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.clearRect(0, 0, width, height);
  draw.textBaseline = "middle";
  return { draw, width };
};
kt.FONT = "11.5px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
kt.letter = () => {
  if (!kt.letterWidth) {
    const draw = document.createElement("canvas").getContext("2d");
    draw.font = kt.FONT;
    kt.letterWidth = draw.measureText("mmmmmmmmmm").width / 10;
  }
  return kt.letterWidth;
};
kt.css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
// Coalesces several calls per frame into the last one.
kt.soon = (act) => {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; act(); });
  };
};
// Redraws when the width or the theme changes.
kt.redraw = (element, act) => {
  let last = 0;
  new ResizeObserver(() => {
    if (element.clientWidth !== last) { last = element.clientWidth; act(); }
  }).observe(element);
  kt.onTheme = (kt.onTheme || []).concat(act);
};
