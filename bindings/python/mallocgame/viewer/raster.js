// Many small rectangles as one image. A canvas takes a millisecond for some hundred of them, and
// large programs have tens of thousands in sight.

/** A colour #rrggbb as the 32 bits of an opaque pixel. */
const pixelOf = (() => {
  const known = new Map();
  return colour => {
    if (!known.has(colour)) {
      const [red, green, blue] = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
      known.set(colour, (255 << 24 | blue << 16 | green << 8 | red) >>> 0);
    }
    return known.get(colour);
  };
})();

class Raster {
  constructor() {
    this.canvas = document.createElement('canvas');
  }

  /** Begins an empty image of a panel's rectangle. */
  begin(frame, {top, bottom}) {
    this.frame = frame;
    this.scale = frame.context.getTransform().a;
    this.left = frame.left;
    this.top = top;
    const width = Math.max(1, Math.round((frame.right - frame.left) * this.scale));
    const height = Math.max(1, Math.round((bottom - top) * this.scale));
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      Object.assign(this.canvas, {width, height});
      this.context = this.canvas.getContext('2d');
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    } else
      this.pixels.fill(0);
  }

  /** In the pixels of the frame; at least one of the image is filled in each direction. */
  rect(x, y, width, height, colour) {
    const {scale, image} = this;
    const left = Math.round((x - this.left) * scale);
    const top = Math.round((y - this.top) * scale);
    const right = Math.max(left + 1, Math.round((x + width - this.left) * scale));
    const bottom = Math.max(top + 1, Math.round((y + height - this.top) * scale));
    const from = Math.max(left, 0);
    const to = Math.min(right, image.width);
    if (from >= to) return;
    const pixel = pixelOf(colour);
    const last = Math.min(bottom, image.height);
    const {pixels} = this;
    for (let row = Math.max(top, 0); row < last; ++row) {
      const end = row * image.width + to;
      let at = row * image.width + from;
      if (end - at > 32)
        pixels.fill(pixel, at, end);
      else
        while (at < end) pixels[at++] = pixel;  // A call takes longer than so few.
    }
  }

  end() {
    const {image, scale} = this;
    this.context.putImageData(image, 0, 0);
    this.frame.context.drawImage(
        this.canvas, this.left, this.top, image.width / scale, image.height / scale);
  }
}
