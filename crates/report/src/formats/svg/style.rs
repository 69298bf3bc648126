//! Colours, dashes and markers of the series, and the style of the file.

/// Distinct colours; further series take them again with other dashes.
pub(super) const COLOURS: usize = 8;

/// Of Okabe and Ito, without the yellow that white paper hides. In print dashes and markers tell the series apart. Rules without
/// variables, which few programs but browsers know.
pub(super) const STYLE: &str = "
.paper { fill: #ffffff }
text { fill: #1a1a1a; font-size: 13px }
.title { font-size: 17px; font-weight: 600 }
.panel { font-size: 14px; font-weight: 600 }
.tick, .note { fill: #555555; font-size: 12px }
.absent { fill: #555555; font-size: 12px; font-style: italic }
.grid { stroke: #e0e0e0; stroke-width: 1 }
.axis { stroke: #777777; stroke-width: 1 }
.interval { stroke: #1a1a1a; stroke-width: 1.5; fill: none }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round }
.mark { fill: #0072b2; opacity: 0.14 }
.h1 { opacity: 0.12 } .h2 { opacity: 0.24 } .h3 { opacity: 0.37 } .h4 { opacity: 0.5 }
.h5 { opacity: 0.63 } .h6 { opacity: 0.76 } .h7 { opacity: 0.88 } .h8 { opacity: 1 }
.limit { fill: none; stroke-width: 1.2; stroke-dasharray: 2 4 }
.c0 { stroke: #0072b2 } .f0 { fill: #0072b2 }
.c1 { stroke: #d55e00 } .f1 { fill: #d55e00 }
.c2 { stroke: #009e73 } .f2 { fill: #009e73 }
.c3 { stroke: #cc79a7 } .f3 { fill: #cc79a7 }
.c4 { stroke: #e69f00 } .f4 { fill: #e69f00 }
.c5 { stroke: #56b4e9 } .f5 { fill: #56b4e9 }
.c6 { stroke: #6b6b6b } .f6 { fill: #6b6b6b }
.c7 { stroke: #7a4b00 } .f7 { fill: #7a4b00 }
.d1 { stroke-dasharray: 7 3 }
.d2 { stroke-dasharray: 2 3 }
.d3 { stroke-dasharray: 9 3 2 3 }
.again { opacity: 0.55 }
@media (prefers-color-scheme: dark) {
.paper { fill: #14171a }
text { fill: #e8e8e8 }
.tick, .note, .absent { fill: #b0b0b0 }
.grid { stroke: #33383d }
.axis { stroke: #8a8a8a }
.interval { stroke: #f5f5f5 }
.c0 { stroke: #4fa8e8 } .f0 { fill: #4fa8e8 }
.c1 { stroke: #ff8c42 } .f1 { fill: #ff8c42 }
.c2 { stroke: #2ecc9b } .f2 { fill: #2ecc9b }
.c3 { stroke: #e39cc4 } .f3 { fill: #e39cc4 }
.c4 { stroke: #ffc04d } .f4 { fill: #ffc04d }
.c5 { stroke: #a5dbff } .f5 { fill: #a5dbff }
.c6 { stroke: #b8b8b8 } .f6 { fill: #b8b8b8 }
.c7 { stroke: #d9a45b } .f7 { fill: #d9a45b }
}
@media print {
.paper { fill: #ffffff }
text, .tick, .note, .absent { fill: #000000 }
.grid { stroke: #cccccc }
}
";

/// The class of a line of this series: its colour and its dashes.
pub(super) fn series_class(place: usize) -> String {
    const DASHES: [&str; 4] = ["", " d1", " d2", " d3"];
    format!("c{}{}", place % COLOURS, DASHES[(place + place / COLOURS) % DASHES.len()])
}

/// The class of an area of this series.
pub(super) fn fill_class(place: usize) -> String {
    let again = if place >= COLOURS { " again" } else { "" };
    format!("f{}{again}", place % COLOURS)
}
