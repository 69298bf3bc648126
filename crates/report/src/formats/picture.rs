//! Forms of files that hold one chart.

use std::fmt;
use std::path::Path;

use super::chart::Chart;
use super::svg;

/// Why a chart is not drawn, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureError {
    /// The cause.
    pub message: String,
    /// The remedy.
    pub hint: &'static str,
}

/// A form of a chart's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// Lines and text, sharp at any size.
    Svg,
    /// Pixels, for what shows no SVG.
    Png,
}

impl PictureFormat {
    /// All of them, in the order of help.
    pub const ALL: [PictureFormat; 2] = [PictureFormat::Svg, PictureFormat::Png];

    /// The name as typed, which is also the ending of its files.
    pub const fn name(self) -> &'static str {
        match self {
            PictureFormat::Svg => "svg",
            PictureFormat::Png => "png",
        }
    }

    /// The form that the ending of a file stands for.
    pub fn of_file(path: &Path) -> Option<PictureFormat> {
        let ending = path.extension()?.to_str()?;
        PictureFormat::ALL.into_iter().find(|format| ending.eq_ignore_ascii_case(format.name()))
    }

    /// The file of a chart.
    ///
    /// # Errors
    /// The form cannot hold the chart, or the program was built without it.
    pub fn render(self, chart: &Chart) -> Result<Vec<u8>, PictureError> {
        match self {
            PictureFormat::Svg => Ok(svg::render(chart).into_bytes()),
            #[cfg(feature = "png")]
            PictureFormat::Png => super::png::render(chart),
            #[cfg(not(feature = "png"))]
            PictureFormat::Png => Err(PictureError {
                message: "this program was built without PNG".to_owned(),
                hint: "write SVG, or build fathom with `--features png`",
            }),
        }
    }
}

impl fmt::Display for PictureFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_file_names_its_form() {
        for (file, expected) in [
            ("a.svg", Some(PictureFormat::Svg)),
            ("b/a.PNG", Some(PictureFormat::Png)),
            ("png", None),
            ("a.jpg", None),
        ] {
            assert_eq!(PictureFormat::of_file(Path::new(file)), expected, "{file}");
        }
    }
}
