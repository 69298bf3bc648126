//! How the parts of a chart look: colours for light and dark grounds, sizes, widths, dashes and markers. Every form of file takes them
//! from here.

/// A colour without transparency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour {
    pub(crate) red: u8,
    pub(crate) green: u8,
    pub(crate) blue: u8,
}

/// `0x0072b2` as a colour.
const fn colour(rgb: u32) -> Colour {
    let [_, red, green, blue] = rgb.to_be_bytes();
    Colour { red, green, blue }
}

/// Distinct colours; further series take them again with other dashes.
pub(crate) const COLOURS: usize = 8;

/// The colours of a chart on one ground.
pub(crate) struct Scheme {
    pub(crate) paper: Colour,
    pub(crate) text: Colour,
    pub(crate) quiet_text: Colour,
    pub(crate) grid: Colour,
    pub(crate) axis: Colour,
    pub(crate) interval: Colour,
    pub(crate) series: [Colour; COLOURS],
}

/// Of Okabe and Ito, without the yellow that white paper hides.
pub(crate) const LIGHT: Scheme = Scheme {
    paper: colour(0xffffff),
    text: colour(0x1a1a1a),
    quiet_text: colour(0x555555),
    grid: colour(0xe0e0e0),
    axis: colour(0x777777),
    interval: colour(0x1a1a1a),
    series: [
        colour(0x0072b2),
        colour(0xd55e00),
        colour(0x009e73),
        colour(0xcc79a7),
        colour(0xe69f00),
        colour(0x56b4e9),
        colour(0x6b6b6b),
        colour(0x7a4b00),
    ],
};

/// The same hues, lighter.
pub(crate) const DARK: Scheme = Scheme {
    paper: colour(0x14171a),
    text: colour(0xe8e8e8),
    quiet_text: colour(0xb0b0b0),
    grid: colour(0x33383d),
    axis: colour(0x8a8a8a),
    interval: colour(0xf5f5f5),
    series: [
        colour(0x4fa8e8),
        colour(0xff8c42),
        colour(0x2ecc9b),
        colour(0xe39cc4),
        colour(0xffc04d),
        colour(0xa5dbff),
        colour(0xb8b8b8),
        colour(0xd9a45b),
    ],
};

/// For paper, where dashes and markers tell the series apart as well.
pub(crate) const PRINT: Scheme =
    Scheme { text: colour(0x000000), quiet_text: colour(0x000000), grid: colour(0xcccccc), ..LIGHT };

/// What a text of a chart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextLook {
    /// Of the whole chart.
    Title,
    /// Of a panel.
    Panel,
    /// A name.
    Label,
    /// A value of an axis.
    Tick,
    /// A sentence below the panels.
    Note,
    /// Why there is no value.
    Absent,
}

impl TextLook {
    /// All of them.
    pub(crate) const ALL: [TextLook; 6] =
        [TextLook::Title, TextLook::Panel, TextLook::Label, TextLook::Tick, TextLook::Note, TextLook::Absent];

    /// Height of the font.
    pub(crate) const fn size(self) -> f64 {
        match self {
            TextLook::Title => 17.0,
            TextLook::Panel => 14.0,
            TextLook::Label => 13.0,
            TextLook::Tick | TextLook::Note | TextLook::Absent => 12.0,
        }
    }

    pub(crate) const fn is_bold(self) -> bool {
        matches!(self, TextLook::Title | TextLook::Panel)
    }

    pub(crate) const fn is_italic(self) -> bool {
        matches!(self, TextLook::Absent)
    }

    pub(crate) const fn is_quiet(self) -> bool {
        matches!(self, TextLook::Tick | TextLook::Note | TextLook::Absent)
    }
}

/// What a line of a chart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineLook {
    /// The place of a tick.
    Grid,
    /// An axis.
    Axis,
    /// An interval of a value, with caps.
    Interval,
    /// The values of this series.
    Curve(usize),
    /// A limit of this series.
    Limit(usize),
}

impl LineLook {
    pub(crate) const fn width(self) -> f64 {
        match self {
            LineLook::Grid | LineLook::Axis => 1.0,
            LineLook::Limit(_) => 1.2,
            LineLook::Interval => 1.5,
            LineLook::Curve(_) => 2.0,
        }
    }

    pub(crate) const fn colour(self, scheme: &Scheme) -> Colour {
        match self {
            LineLook::Grid => scheme.grid,
            LineLook::Axis => scheme.axis,
            LineLook::Interval => scheme.interval,
            LineLook::Curve(place) | LineLook::Limit(place) => scheme.series[place % COLOURS],
        }
    }
}

/// The dashes of a limit.
pub(crate) const LIMIT_DASHES: &[f64] = &[2.0, 4.0];
/// The dashes that curves take by turns.
pub(crate) const CURVE_DASHES: [&[f64]; 4] = [&[], &[7.0, 3.0], &[2.0, 3.0], &[9.0, 3.0, 2.0, 3.0]];

/// Which of [`CURVE_DASHES`] the curve of a series has.
pub(crate) const fn dashes_of(place: usize) -> usize {
    (place + place / COLOURS) % CURVE_DASHES.len()
}

/// What an area of a chart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AreaLook {
    /// A bar, dot or marker of this series.
    Series(usize),
    /// A stretch without values.
    Mark,
    /// A cell of a map: 1 to [`LEVELS`].
    Level(usize),
}

/// Strengths of cells that a reader tells apart.
pub(crate) const LEVELS: usize = 8;
const LEVEL_OPACITIES: [f64; LEVELS] = [0.12, 0.24, 0.37, 0.5, 0.63, 0.76, 0.88, 1.0];

impl AreaLook {
    pub(crate) fn opacity(self) -> f64 {
        match self {
            AreaLook::Series(place) if place >= COLOURS => 0.55,
            AreaLook::Series(_) => 1.0,
            AreaLook::Mark => 0.14,
            AreaLook::Level(level) => LEVEL_OPACITIES[level.clamp(1, LEVELS) - 1],
        }
    }

    pub(crate) const fn colour(self, scheme: &Scheme) -> Colour {
        match self {
            AreaLook::Series(place) => scheme.series[place % COLOURS],
            AreaLook::Mark | AreaLook::Level(_) => scheme.series[0],
        }
    }
}
