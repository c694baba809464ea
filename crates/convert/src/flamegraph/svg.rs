//! Drawing of a flame graph as SVG.

use super::{FlameBox, FlameGraph};
use crate::stacks::FigureUnit;
use kerntune_profile::PathKind;
use std::io::{self, Write};

/// Script that zooms and searches. The picture is complete without it.
const SCRIPT: &str = include_str!("flamegraph.js");

const ROW: usize = 17;
const TOP: usize = 64;
const BOTTOM: usize = 40;
const MARGIN: f64 = 10.0;
/// Approximate width of a letter in pixels.
const LETTER: f64 = 6.7;

/// Title and size of the picture.
#[derive(Debug, Clone, Copy)]
pub struct FlameGraphSvg<'a> {
    /// Title of the picture.
    pub title: &'a str,
    /// Name of the base profile, if there is one.
    pub base: Option<&'a str>,
    /// Unit of the widths.
    pub unit: FigureUnit,
    /// Width in pixels.
    pub width: u32,
}

impl FlameGraphSvg<'_> {
    /// Draws the boxes.
    pub fn write(&self, flames: &FlameGraph, out: &mut impl Write) -> io::Result<()> {
        let height = TOP + flames.depth() * ROW + BOTTOM;
        let width = f64::from(self.width);
        let (unit, total) = (self.unit.name(), flames.total[0]);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"11\">"
        )?;
        writeln!(
            out,
            "<style>.f{{cursor:pointer}}.f:hover rect{{stroke:#000}}.f text{{pointer-events:none}}</style>"
        )?;
        writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>")?;
        let line = |out: &mut dyn Write, y: usize, size: u32, text: &str| {
            writeln!(out, "<text x=\"{MARGIN}\" y=\"{y}\" font-size=\"{size}\">{}</text>", escaped(text))
        };
        line(out, 20, 15, self.title)?;
        let against = match self.base {
            Some(base) => format!(
                "width: {} {unit} here; red: a path itself took more than in {base}, blue: less ({} {unit} there)",
                grouped(total),
                grouped(flames.total[1])
            ),
            None => format!("width: {} {unit}, callees included", grouped(total)),
        };
        line(out, 38, 11, &against)?;
        let mut left_out = Vec::new();
        if flames.small > 0 {
            left_out.push(format!("{} paths are too small for a box", grouped(flames.small as u64)));
        }
        if flames.gone > 0 {
            left_out
                .push(format!("{} {unit} there are in paths that are not taken here", grouped(flames.gone)));
        }
        line(out, 54, 11, &left_out.join("; "))?;
        writeln!(
            out,
            "<text id=\"reset\" x=\"{}\" y=\"20\" style=\"cursor:pointer\" visibility=\"hidden\">reset zoom</text>\
             <text id=\"search\" x=\"{}\" y=\"20\" style=\"cursor:pointer\">search</text>",
            width - 180.0,
            width - 70.0
        )?;
        writeln!(out, "<text id=\"details\" x=\"{MARGIN}\" y=\"{}\"> </text>", height - 14)?;
        writeln!(out, "<g id=\"boxes\" data-total=\"{total}\" data-unit=\"{unit}\">")?;
        let max = flames.blocks.iter().map(|block| change(block).unsigned_abs()).max().unwrap_or(0).max(1);
        let scale = (width - 2.0 * MARGIN) / total.max(1) as f64;
        for block in &flames.blocks {
            let (x, w) = (MARGIN + block.begin as f64 * scale, block.all[0] as f64 * scale);
            let y = TOP + (flames.depth() - 1 - block.depth) * ROW;
            let color = match flames.differential {
                true => heat(change(block), max),
                false => hue(block),
            };
            write!(
                out,
                "<g class=\"f\" data-b=\"{}\" data-w=\"{}\"><title>{}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" \
                 height=\"{}\" rx=\"1\" fill=\"{color}\"/>",
                block.begin,
                block.all[0],
                escaped(&self.tip(flames, block)),
                w.max(0.2),
                ROW - 1
            )?;
            writeln!(
                out,
                "<text x=\"{:.2}\" y=\"{}\">{}</text></g>",
                x + 3.0,
                y + 12,
                escaped(&cut(&block.name, w))
            )?;
        }
        writeln!(out, "</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>")
    }

    /// Returns the tooltip of a box; it begins with the name.
    fn tip(&self, flames: &FlameGraph, block: &FlameBox) -> String {
        let unit = self.unit.name();
        let percent = 100.0 * block.all[0] as f64 / flames.total[0].max(1) as f64;
        let mut tip = format!(
            "{}: {} {unit} ({percent:.2} %), {} of them its own",
            block.name,
            grouped(block.all[0]),
            grouped(block.own[0])
        );
        if flames.differential {
            let sign = |change: i128| if change > 0 { "+" } else { "−" };
            let all = i128::from(block.all[0]) - i128::from(block.all[1]);
            let parts = [("", all), (" of its own", change(block))].map(|(what, change)| {
                format!(
                    "{}{}{what}",
                    sign(change),
                    grouped(change.unsigned_abs().min(u128::from(u64::MAX)) as u64)
                )
            });
            tip += &format!("; against the base profile {}", parts.join(", "));
        }
        tip
    }
}

/// Returns the difference of a path's self time to the base profile.
fn change(block: &FlameBox) -> i128 {
    i128::from(block.own[0]) - i128::from(block.own[1])
}

/// Returns a color from blue over white to red. It follows the square root, so that small changes
/// are visible.
fn heat(change: i128, max: u128) -> String {
    let part = (change.unsigned_abs() as f64 / max as f64).sqrt();
    let fade = (245.0 - 175.0 * part).round() as u8;
    match change.signum() {
        1 => format!("rgb(245,{fade},{fade})"),
        -1 => format!("rgb({fade},{fade},245)"),
        _ => "rgb(240,240,240)".into(),
    }
}

/// Returns the color of a name, always the same: warm for the kernel, green for user code, gray for
/// other frames.
fn hue(block: &FlameBox) -> String {
    let hash = block.name.bytes().fold(5381u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
    let (a, b) = (hash % 64, (hash >> 8) % 64);
    match block.kind {
        PathKind::Function if block.name.ends_with(']') => format!("rgb({},{},120)", 110 + a, 190 + b / 2),
        PathKind::Function => format!("rgb({},{},{})", 225 + a / 3, 120 + b * 3 / 2, 60 + a / 2),
        PathKind::User => "rgb(150,210,130)".into(),
        PathKind::Interrupt => "rgb(200,170,225)".into(),
        _ => "rgb(205,205,205)".into(),
    }
}

/// Cuts a name to the width of a box.
fn cut(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / LETTER).max(0.0) as usize;
    match (name.chars().count(), room) {
        (length, room) if length <= room => name.to_owned(),
        (_, 0..=2) => String::new(),
        (_, room) => name.chars().take(room - 2).chain("..".chars()).collect(),
    }
}

/// Formats a number with separators: `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::tests::stacks;

    fn draw(base: Option<&str>) -> String {
        let (stacks, mut other) = (stacks(), stacks());
        other.paths[1].figures.own += 50;
        other.paths[4].figures.own -= 100;
        let flames = FlameGraph::of(&stacks, base.map(|_| &other), 0);
        let picture = FlameGraphSvg { title: "rr <1>", base, unit: FigureUnit::Instructions, width: 1200 };
        let mut out = Vec::new();
        picture.write(&flames, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_picture_says_what_it_shows() {
        let svg = draw(None);
        assert!(svg.contains("width: 1,000 instructions, callees included"), "{svg}");
        assert!(svg.contains("<title>sys: 200 instructions (20.00 %), 150 of them its own</title>"), "{svg}");
        assert!(svg.contains("rr &lt;1&gt;"), "{svg}");
        assert_eq!(svg.matches("class=\"f\"").count(), 7);
    }

    #[test]
    fn a_differential_one_has_both_figures() {
        let svg = draw(Some("other"));
        assert!(svg.contains("against the base profile −50, −50 of its own"), "{svg}");
        assert!(svg.contains(
            "[user]: 400 instructions (40.00 %), 400 of them its own; against the base profile +100"
        ));
        assert!(svg.contains("rgb(245,70,70)") && svg.contains("rgb(240,240,240)"), "{svg}");
    }

    #[test]
    fn names_fit() {
        assert_eq!(
            [cut("tcp_v4_rcv", 90.0), cut("tcp_v4_rcv", 40.0), cut("tcp", 5.0)],
            ["tcp_v4_rcv", "tcp..", ""]
        );
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
