//! An image of pixels without transparency, on which areas are laid.

use crate::formats::chart::look::Colour;

/// Rows of pixels from the top.
pub(super) struct Image {
    width: u32,
    height: u32,
    /// Red, green and blue of each pixel.
    bytes: Vec<u8>,
}

impl Image {
    /// An image of one colour.
    pub(super) fn new(width: u32, height: u32, ground: Colour) -> Image {
        let pixel = [ground.red, ground.green, ground.blue];
        Image { width, height, bytes: pixel.repeat(width as usize * height as usize) }
    }

    pub(super) const fn width(&self) -> u32 {
        self.width
    }

    pub(super) const fn height(&self) -> u32 {
        self.height
    }

    /// The rows as bytes, red, green and blue by turns.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact((self.width as usize * 3).max(1))
    }

    /// Lays `colour` on a pixel as far as it is covered, 0 to 1; outside of the image is nothing.
    pub(super) fn blend(&mut self, x: u32, y: u32, colour: Colour, coverage: f32) {
        if x >= self.width || y >= self.height {
            return;
        }
        let at = (y as usize * self.width as usize + x as usize) * 3;
        let coverage = coverage.clamp(0.0, 1.0);
        for (byte, laid) in self.bytes[at..at + 3].iter_mut().zip([colour.red, colour.green, colour.blue]) {
            let before = f32::from(*byte);
            *byte = (before + (f32::from(laid) - before) * coverage).round() as u8;
        }
    }
}
