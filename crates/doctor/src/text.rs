//! The report as text.

use crate::{Ability, AbilityProblem, CheckStatus, DoctorReport, HostCheck};
use std::fmt::Write;

const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

impl DoctorReport {
    /// Formats the report: a summary, one aligned line per check, and the fixes for all problems.
    pub fn text(&self, color: bool) -> String {
        let mut text = summary(self, color);
        let width = self.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
        let mut group = None;
        for check in &self.checks {
            if group != Some(check.group) {
                group = Some(check.group);
                let _ = write!(text, "\n{}\n", paint(check.group.title(), BOLD, color));
            }
            row(&mut text, check, width, color);
        }
        text
    }
}

fn summary(report: &DoctorReport, color: bool) -> String {
    let mut text = String::new();
    let names: Vec<_> = report.ready_for.iter().map(|ability| ability.name()).collect();
    let (ready, shade) =
        if names.is_empty() { ("nothing".to_string(), RED) } else { (names.join(", "), GREEN) };
    let _ = writeln!(text, "ready for: {}", paint(&ready, shade, color));
    list(&mut text, "limited", &report.limited, color);
    list(&mut text, "not available", &report.not_available, color);
    if !report.ready {
        let names = |absent: &&AbilityProblem| absent.ability.is_required();
        let lacking: Vec<_> =
            report.not_available.iter().filter(names).map(|absent| absent.ability.name()).collect();
        let _ = writeln!(text, "`kerntune tune` needs: {}", paint(&lacking.join(", "), RED, color));
    }
    text
}

fn list(text: &mut String, title: &str, absent: &[AbilityProblem], color: bool) {
    for (at, AbilityProblem { ability, because }) in absent.iter().enumerate() {
        let lead = if at == 0 { format!("{title}: ") } else { " ".repeat(title.len() + 2) };
        let _ = writeln!(text, "{lead}{} ({because})", paint(ability.name(), shade_of(*ability), color));
    }
}

fn shade_of(ability: Ability) -> &'static str {
    if ability.is_required() {
        RED
    } else {
        YELLOW
    }
}

fn row(text: &mut String, check: &HostCheck, width: usize, color: bool) {
    let (word, shade) = match check.status {
        CheckStatus::Ok => ("ok", GREEN),
        CheckStatus::Limited => ("limited", YELLOW),
        CheckStatus::Missing if check.abilities.iter().any(|ability| ability.is_required()) => {
            ("missing", RED)
        }
        CheckStatus::Missing => ("missing", YELLOW),
    };
    let status = paint(&format!("{word:7}"), shade, color);
    let _ = writeln!(text, "  {status}  {:width$}  {}", check.name, check.found);
    if let Some(fix) = &check.fix {
        let indent = " ".repeat(2 + 7 + 2 + width + 2);
        let _ = writeln!(text, "{indent}for: {}", check.needed_for);
        let _ = writeln!(text, "{indent}fix: {fix}");
    }
}

fn paint(text: &str, shade: &str, color: bool) -> String {
    if color {
        format!("{shade}{text}{PLAIN}")
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckGroup;

    fn report() -> DoctorReport {
        DoctorReport::new(vec![
            HostCheck::of(CheckGroup::Machines, "tcg", "exact runs", &[Ability::Emulator])
                .ok("booted Linux 6.12.117"),
            HostCheck::of(CheckGroup::Machines, "kvm", "timed runs", &[Ability::Kvm])
                .missing("not a word within 6 s", "use the emulator"),
            HostCheck::of(CheckGroup::Compilers, "gcc", "kernels", &[Ability::GccPgo])
                .limited("unsure", "look"),
        ])
    }

    #[test]
    fn the_summary_comes_first_and_columns_align() {
        assert_eq!(
            report().text(false),
            "ready for: emulator\n\
             limited: gcc-pgo (gcc: unsure)\n\
             not available: kvm (not a word within 6 s)\n\
             \n\
             machines\n\
             \x20 ok       tcg  booted Linux 6.12.117\n\
             \x20 missing  kvm  not a word within 6 s\n\
             \x20               for: timed runs\n\
             \x20               fix: use the emulator\n\
             \n\
             compilers\n\
             \x20 limited  gcc  unsure\n\
             \x20               for: kernels\n\
             \x20               fix: look\n"
        );
    }

    #[test]
    fn color_changes_nothing_but_color() {
        let colored = report().text(true);
        assert!(colored.contains(GREEN));
        let plain =
            [GREEN, YELLOW, RED, BOLD, PLAIN].iter().fold(colored, |text, code| text.replace(code, ""));
        assert_eq!(plain, report().text(false));
    }
}
