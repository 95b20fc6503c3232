// The time slider: two handles on one track, over a drawing of how much happened when.

const $ = (id) => document.getElementById(id);

export class Slider {
  // `moved(which, part)` is called while a handle is dragged, `dropped(which)` when it is let go.
  constructor(moved, dropped, stepped) {
    this.moved = moved;
    this.dropped = dropped;
    this.parts = [];
    this.at = { from: 1, to: 1 };
    this.dragging = null;
    const track = $("track");
    for (const which of ["from", "to"]) {
      $(which).addEventListener("keydown", (event) => {
        const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
        if (!way) return;
        event.preventDefault();
        stepped(which, way);
      });
    }
    track.addEventListener("pointerdown", (event) => {
      this.dragging = event.target.id === "from" ? "from" : "to";
      track.setPointerCapture(event.pointerId);
      $(this.dragging).focus();
      if (!event.target.classList.contains("handle")) this.drag(event);
    });
    track.addEventListener("pointermove", (event) => this.dragging && this.drag(event));
    const end = () => {
      if (!this.dragging) return;
      const which = this.dragging;
      this.dragging = null;
      this.dropped(which);
    };
    track.addEventListener("pointerup", end);
    track.addEventListener("pointercancel", end);
    new ResizeObserver(() => this.draw()).observe(track);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  drag(event) {
    const box = $("track").getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientX - box.left) / Math.max(1, box.width)));
    this.place(this.dragging, part);
    this.moved(this.dragging, part);
  }

  place(which, part) {
    this.at[which] = part;
    const handle = $(which);
    handle.style.left = `${part * 100}%`;
    handle.setAttribute("aria-valuemin", "0");
    handle.setAttribute("aria-valuemax", "100");
    handle.setAttribute("aria-valuenow", String(Math.round(part * 100)));
    const [low, high] = [this.at.from, this.at.to].sort((one, other) => one - other);
    $("range").style.left = `${low * 100}%`;
    $("range").style.width = `${(high - low) * 100}%`;
  }

  show(parts) {
    this.parts = parts;
    this.draw();
  }

  draw() {
    const canvas = $("activity");
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (!width || !this.parts.length) return;
    canvas.width = width * devicePixelRatio;
    canvas.height = height * devicePixelRatio;
    const pen = canvas.getContext("2d");
    pen.scale(devicePixelRatio, devicePixelRatio);
    pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--bar");
    const most = Math.log1p(Math.max(...this.parts));
    const step = width / this.parts.length;
    this.parts.forEach((count, place) => {
      if (!count) return;
      const tall = Math.max(1, (Math.log1p(count) / most) * (height - 4));
      pen.fillRect(place * step, height - tall, Math.max(1, step - 0.5), tall);
    });
  }
}
