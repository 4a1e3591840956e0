// A picture that can be zoomed, moved, inverted and made brighter, by mouse, touch or keys.

const LARGEST = 40;

export class Viewer {
  constructor(url, words) {
    this.element = document.createElement("div");
    this.element.className = "stage";
    this.image = document.createElement("img");
    this.image.alt = words;
    this.image.draggable = false;
    this.image.addEventListener("load", () => {
      // A few pixels, such as a digit, are shown as they are, not blurred.
      this.image.classList.toggle("small", Math.max(this.image.naturalWidth, this.image.naturalHeight) < 128);
    });
    this.image.src = url;
    this.element.append(this.image);
    this.pointers = new Map();
    this.reset();
    this.element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.element.addEventListener("pointerdown", (event) => this.down(event));
    this.element.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) {
      this.element.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
    }
    this.element.addEventListener("dblclick", () => this.reset());
  }

  reset() {
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.draw();
  }

  draw() {
    this.element.classList.toggle("zoomed", this.scale > 1);
    this.image.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
  }

  // Around a point that stays where it is; the middle, unless given.
  zoom(factor, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2) {
    const scale = Math.min(LARGEST, Math.max(1, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.keepInside();
  }

  pan(x, y) {
    this.x += x;
    this.y += y;
    this.keepInside();
  }

  keepInside() {
    const { clientWidth: width, clientHeight: height } = this.element;
    this.x = Math.min(0, Math.max(width * (1 - this.scale), this.x));
    this.y = Math.min(0, Math.max(height * (1 - this.scale), this.y));
    this.draw();
  }

  wheel(event) {
    event.preventDefault();
    const box = this.element.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }

  down(event) {
    this.element.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) return;
    const now = { x: event.clientX, y: event.clientY };
    if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = (point) => Math.hypot(point.x - other.x, point.y - other.y);
      const box = this.element.getBoundingClientRect();
      const middle = { x: (now.x + other.x) / 2 - box.left, y: (now.y + other.y) / 2 - box.top };
      this.zoom(apart(now) / Math.max(1, apart(before)), middle.x, middle.y);
    } else {
      this.pan(now.x - before.x, now.y - before.y);
    }
    this.pointers.set(event.pointerId, now);
  }

  look({ inverted, brightness, contrast }) {
    this.image.style.filter = `${inverted ? "invert(1) " : ""}brightness(${brightness}%) contrast(${contrast}%)`;
  }
}
