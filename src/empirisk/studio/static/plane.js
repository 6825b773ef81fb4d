// The plane: regions, borders, margins, points, curves and ellipses on a canvas.

export const COLOURS = Array.from({length: 8}, (_, k) => `--c${k}`);
const FINE = 240;  // pixels across of the shaded regions, which are then stretched
const SHAPES = [
  (c, x, y, r) => c.arc(x, y, r, 0, 2 * Math.PI),
  (c, x, y, r) => c.rect(x - .88 * r, y - .88 * r, 1.76 * r, 1.76 * r),
  (c, x, y, r) => { c.moveTo(x, y - 1.2 * r); c.lineTo(x + 1.1 * r, y + .8 * r); c.lineTo(x - 1.1 * r, y + .8 * r); c.closePath(); },
  (c, x, y, r) => { c.moveTo(x, y - 1.25 * r); c.lineTo(x + 1.25 * r, y); c.lineTo(x, y + 1.25 * r); c.lineTo(x - 1.25 * r, y); c.closePath(); },
];

/** The scores of a grid as arrays of numbers, one for each class or one in all. */
export function unpacked(grid) {
  return grid.scores.map(text => {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0)), view = new DataView(bytes.buffer);
    return Float32Array.from({length: bytes.length / 2}, (_, k) => view.getInt16(2 * k, true) * grid.reach / 32767);
  });
}

const rgb = colour => { const [r, g, b] = colour.match(/[\da-f]{2}/gi).map(part => parseInt(part, 16)); return [r, g, b]; };

export class Plane {
  constructor(canvas, reach) {
    this.canvas = canvas;
    this.reach = reach;
    this.look();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.look(); this.draw(); });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  /** Colours of the page, which differ in light and dark. */
  look() {
    const style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue(name).trim();
    this.colours = COLOURS.map(colour);
    [this.ink, this.paper, this.faint] = [colour("--ink"), colour("--paper"), colour("--line")];
    this.shades = null;
  }

  show(scene) {
    if (scene.picture !== this.scene?.picture || scene.task !== this.scene?.task) { this.shades = null; this.lines = null; }
    this.scene = scene;
    this.draw();
  }

  toPixel = ([x, y]) => [(x + this.reach) / (2 * this.reach) * this.size, (this.reach - y) / (2 * this.reach) * this.size];
  toPlace = (x, y) => [x / this.size * 2 * this.reach - this.reach, this.reach - y / this.size * 2 * this.reach];

  draw() {
    if (!this.scene) return;
    const ratio = devicePixelRatio || 1, size = this.canvas.clientWidth, c = this.canvas.getContext("2d");
    if (this.canvas.width !== Math.round(size * ratio)) this.canvas.width = this.canvas.height = Math.round(size * ratio);
    this.size = size;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = this.paper;
    c.fillRect(0, 0, size, size);
    const {picture, points, task, cursor} = this.scene;
    if (picture?.grid) this.regions(c, picture);
    this.axes(c);
    if (picture?.grid) this.borders(c, picture);
    if (picture?.curve) this.curve(c, picture, points);
    this.dots(c, picture, points, task);
    if (picture?.ellipses) this.ellipses(c, picture);
    if (picture?.centres) this.centres(c, picture);
    if (cursor) this.cross(c, cursor);
  }

  axes(c) {
    c.strokeStyle = this.faint;
    c.globalAlpha = .8;
    c.lineWidth = 1;
    for (let at = -this.reach + 1; at < this.reach; at++) {
      const [x, y] = this.toPixel([at, at]);
      c.beginPath(); c.moveTo(x, 0); c.lineTo(x, this.size); c.moveTo(0, y); c.lineTo(this.size, y); c.stroke();
    }
    c.globalAlpha = 1;
  }

  regions(c, picture) {
    if (!this.shades) this.shades = this.shaded(picture);
    c.imageSmoothingEnabled = true;
    c.imageSmoothingQuality = "high";
    c.drawImage(this.shades, 0, 0, this.size, this.size);
  }

  /** Colours by the winning class, the stronger the further it leads. */
  shaded({grid, classes}) {
    const scores = unpacked(grid), side = grid.side, image = new ImageData(FINE, FINE);
    const paints = classes.map(label => rgb(this.colours[label % 8])), paper = rgb(this.paper);
    const values = new Float32Array(scores.length);
    for (let row = 0; row < FINE; row++) for (let column = 0; column < FINE; column++) {
      const gx = column / (FINE - 1) * (side - 1), gy = (1 - row / (FINE - 1)) * (side - 1);
      const x0 = Math.min(Math.floor(gx), side - 2), y0 = Math.min(Math.floor(gy), side - 2), fx = gx - x0, fy = gy - y0, at = y0 * side + x0;
      for (let k = 0; k < scores.length; k++) {
        const s = scores[k];
        values[k] = (1 - fy) * ((1 - fx) * s[at] + fx * s[at + 1]) + fy * ((1 - fx) * s[at + side] + fx * s[at + side + 1]);
      }
      let winner, lead;
      if (scores.length === 1) { winner = values[0] > 0 ? 1 : 0; lead = Math.abs(values[0]); }
      else { winner = 0; for (let k = 1; k < values.length; k++) if (values[k] > values[winner]) winner = k; lead = Math.max(values[winner], 0); }
      const share = .1 + .38 * Math.tanh(1.1 * lead), paint = paints[winner], place = 4 * (row * FINE + column);
      for (let k = 0; k < 3; k++) image.data[place + k] = paper[k] + share * (paint[k] - paper[k]);
      image.data[place + 3] = 255;
    }
    const canvas = new OffscreenCanvas(FINE, FINE);
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  borders(c, picture) {
    if (!this.lines) {
      const scores = unpacked(picture.grid), side = picture.grid.side;
      const solid = (scores.length === 1 ? scores : scores.slice(1)).map(values => contour(values, side, 0));
      this.lines = {solid, dashed: picture.margins ? [contour(scores[0], side, -1), contour(scores[0], side, 1)] : []};
    }
    const stroke = (lines, width, dash) => {
      c.strokeStyle = this.ink; c.lineWidth = width; c.setLineDash(dash); c.beginPath();
      for (const [x1, y1, x2, y2] of lines.flat()) { const k = this.size; c.moveTo(x1 * k, (1 - y1) * k); c.lineTo(x2 * k, (1 - y2) * k); }
      c.stroke(); c.setLineDash([]);
    };
    stroke(this.lines.solid, 2, []);
    c.globalAlpha = .7;
    stroke(this.lines.dashed, 1.2, []);
    c.globalAlpha = 1;
  }

  curve(c, {curve, tube, said}, points) {
    const place = (k, y) => this.toPixel([-this.reach + 2 * this.reach * k / (curve.length - 1), y]);
    const trace = shift => { c.beginPath(); curve.forEach((y, k) => { const [px, py] = place(k, y + shift); k ? c.lineTo(px, py) : c.moveTo(px, py); }); c.stroke(); };
    c.strokeStyle = this.colours[5]; c.lineWidth = 1; c.globalAlpha = .55;
    points.forEach(([x, y], k) => { if (said?.[k] === undefined) return; const a = this.toPixel([x, y]), b = this.toPixel([x, said[k]]); c.beginPath(); c.moveTo(...a); c.lineTo(...b); c.stroke(); });
    c.globalAlpha = 1; c.strokeStyle = this.ink; c.lineWidth = 2.6;
    trace(0);
    if (tube) { c.lineWidth = 1.2; c.setLineDash([5, 4]); trace(tube); trace(-tube); c.setLineDash([]); }
  }

  dots(c, picture, points, task) {
    const held = new Set(this.scene.held ?? []), moved = new Set(picture?.moved ?? []), largest = Math.max(...(picture?.duals ?? [0]), 1e-12);
    points.forEach(([x, y, label], k) => {
      const [px, py] = this.toPixel([x, y]), shown = task === "clusters" ? picture?.labels?.[k] ?? 8 : label;
      const colour = shown === 8 ? this.faint : this.colours[shown % 8], dual = picture?.duals?.[k] ?? 0;
      if (dual > 0 && picture.supported !== false) {
        c.beginPath(); c.arc(px, py, 7.5 + 4.5 * dual / largest, 0, 2 * Math.PI);
        c.strokeStyle = this.ink; c.lineWidth = .7 + 1.3 * dual / largest; c.stroke();
      }
      if (moved.has(k)) { c.beginPath(); c.arc(px, py, 15, 0, 2 * Math.PI); c.strokeStyle = this.colours[5]; c.lineWidth = 3.5; c.stroke(); }
      c.beginPath();
      SHAPES[task === "numbers" ? 0 : shown % 4](c, px, py, 5);
      c.lineWidth = held.has(k) ? 2.2 : 1;
      c.fillStyle = held.has(k) ? this.paper : colour;
      c.strokeStyle = held.has(k) ? colour : this.ink;
      c.fill(); c.stroke();
    });
  }

  ellipses(c, {ellipses, centres}) {
    const scale = this.size / (2 * this.reach);
    ellipses.forEach(([a, b, turn], k) => {
      const [x, y] = this.toPixel(centres[k]);
      c.strokeStyle = this.colours[k % 8];
      for (const times of [1, 2]) { c.lineWidth = 3 - times; c.beginPath(); c.ellipse(x, y, Math.max(times * a * scale, .5), Math.max(times * b * scale, .5), -turn, 0, 2 * Math.PI); c.stroke(); }
    });
  }

  centres(c, {centres}) {
    centres.forEach((place, k) => {
      const [x, y] = this.toPixel(place);
      c.lineCap = "round";
      for (const [width, colour] of [[11, this.paper], [8, this.ink], [4, this.colours[k % 8]]]) {
        c.strokeStyle = colour; c.lineWidth = width; c.beginPath();
        c.moveTo(x - 9, y - 9); c.lineTo(x + 9, y + 9); c.moveTo(x - 9, y + 9); c.lineTo(x + 9, y - 9); c.stroke();
      }
      c.lineCap = "butt";
    });
  }

  cross(c, place) {
    const [x, y] = this.toPixel(place);
    c.strokeStyle = this.ink; c.lineWidth = 1.5; c.beginPath();
    c.moveTo(x - 11, y); c.lineTo(x + 11, y); c.moveTo(x, y - 11); c.lineTo(x, y + 11); c.stroke();
  }
}

/** Pieces of the line on which values of a grid have a level, in parts of the plane (marching squares). */
export function contour(values, side, level) {
  const pieces = [], step = 1 / (side - 1);
  for (let row = 0; row < side - 1; row++) for (let column = 0; column < side - 1; column++) {
    const at = row * side + column, corner = [values[at], values[at + 1], values[at + side + 1], values[at + side]].map(value => value - level);
    const places = [[0, 0], [1, 0], [1, 1], [0, 1]], cuts = [];
    for (let k = 0; k < 4; k++) {
      const a = corner[k], b = corner[(k + 1) % 4];
      if ((a > 0) === (b > 0)) continue;
      const share = a / (a - b), [x1, y1] = places[k], [x2, y2] = places[(k + 1) % 4];
      cuts.push([(column + x1 + share * (x2 - x1)) * step, (row + y1 + share * (y2 - y1)) * step]);
    }
    for (let k = 0; k + 1 < cuts.length; k += 2) pieces.push([...cuts[k], ...cuts[k + 1]]);
  }
  return pieces;
}
