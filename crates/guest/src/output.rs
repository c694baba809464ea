//! Judges a step's output, and parses its metrics.

use crate::workload::{MetricDirection, WorkloadMetric, WorkloadStep};
use regex::Regex;
use serde::Serialize;

/// A metric with its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricValue {
    /// Name of the metric.
    pub name: String,
    /// Number that the step printed; finite.
    pub value: f64,
    /// Unit of the metric, as the workload gives it.
    pub unit: String,
    /// Direction of better values.
    pub better: MetricDirection,
}

/// Reason why a step failed although it ended with status 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum OutputFailure {
    #[error("printed `{text}`, which `fail` names as a failure ({pattern})")]
    Fail { pattern: String, text: String },
    #[error("did not print what it must (expect: {pattern}){}", last(ended))]
    Expect { pattern: String, ended: String },
    #[error("printed no metric {metric} ({pattern}){}", last(ended))]
    NoMetric { metric: String, pattern: String, ended: String },
    #[error("printed `{text}` for its metric {metric}, which is not a number")]
    NotANumber { metric: String, text: String },
    #[error("cannot be judged: {0}")]
    Regex(String),
}

fn last(ended: &str) -> String {
    match ended {
        "" => "; it printed nothing".into(),
        lines => format!("; its last words: {lines}"),
    }
}

/// Lines of a log to quote in a message.
const LINES: usize = 3;

/// Characters of a line to quote in a message; init has the same limit.
const WIDTH: usize = 160;

/// Returns the last three nonempty lines of a log, clipped, without control characters, joined with
/// ` | ` as init does it.
///
/// ```
/// assert_eq!(kerntune_guest::last_lines("a\nb\n\nc\nd\n"), "b | c | d");
/// ```
pub fn last_lines(log: &str) -> String {
    let mut lines: Vec<String> =
        log.lines().rev().map(clip).filter(|line| !line.is_empty()).take(LINES).collect();
    lines.reverse();
    lines.join(" | ")
}

fn clip(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(WIDTH).collect::<String>().trim().to_owned()
}

impl WorkloadStep {
    /// Judges what the program printed, standard error included, and returns its metrics.
    ///
    /// # Errors
    /// The first problem: matches of `fail` come first, since they say more than missing output.
    pub fn judge(&self, output: &str) -> Result<Vec<MetricValue>, OutputFailure> {
        for pattern in &self.fail {
            if let Some(found) = compile(pattern)?.find(output) {
                // The whole line says more than the match.
                let start = output[..found.start()].rfind('\n').map_or(0, |at| at + 1);
                let line = output[start..].lines().next().unwrap_or_default();
                return Err(OutputFailure::Fail { pattern: pattern.clone(), text: clip(line) });
            }
        }
        let ended = || last_lines(output);
        for pattern in &self.expect {
            if !compile(pattern)?.is_match(output) {
                return Err(OutputFailure::Expect { pattern: pattern.clone(), ended: ended() });
            }
        }
        self.metrics.iter().map(|metric| metric.figure(output)).collect()
    }
}

impl WorkloadMetric {
    fn figure(&self, output: &str) -> Result<MetricValue, OutputFailure> {
        let regex = compile(&self.regex)?;
        let text = regex.captures(output).and_then(|found| found.get(1)).map(|group| group.as_str());
        let Some(text) = text else {
            let ended = last_lines(output);
            return Err(OutputFailure::NoMetric {
                metric: self.name.clone(),
                pattern: self.regex.clone(),
                ended,
            });
        };
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(MetricValue {
                name: self.name.clone(),
                value,
                unit: self.unit.clone(),
                better: self.better,
            }),
            _ => Err(OutputFailure::NotANumber { metric: self.name.clone(), text: clip(text) }),
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, OutputFailure> {
    Regex::new(pattern).map_err(|error| OutputFailure::Regex(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `ab` 2.3 against nginx 1.22, shortened.
    const AB: &str = "Document Length:        4 bytes\n\nConcurrency Level:      100\n\
                      Time taken for tests:   0.214 seconds\nComplete requests:      1000\n\
                      Failed requests:        0\nRequests per second:    4672.92 [#/sec] (mean)\n";

    fn ab() -> WorkloadStep {
        WorkloadStep {
            fail: vec![r"Failed requests: +[1-9]".into(), "Non-2xx responses".into()],
            expect: vec![r"Complete requests: +1000\n".into()],
            metrics: vec![WorkloadMetric {
                name: "rps".into(),
                regex: r"Requests per second: +(\S+)".into(),
                unit: "requests/s".into(),
                better: MetricDirection::Higher,
            }],
            ..WorkloadStep::default()
        }
    }

    fn complaint(output: &str) -> String {
        ab().judge(output).unwrap_err().to_string()
    }

    #[test]
    fn a_good_run_gives_its_figures() {
        let figures = ab().judge(AB).unwrap();
        assert_eq!((figures[0].name.as_str(), figures[0].value), ("rps", 4672.92));
    }

    #[test]
    fn a_named_failure_is_quoted_with_its_line() {
        let failed = AB.replace("requests:        0", "requests:        3");
        assert_eq!(
            complaint(&failed),
            "printed `Failed requests:        3`, which `fail` names as a failure (Failed requests: +[1-9])"
        );
        assert!(complaint(&format!("{AB}Non-2xx responses:      1000\n")).contains("`Non-2xx responses:"));
    }

    #[test]
    fn lost_requests_are_not_a_figure() {
        let lost = AB.replace("requests:      1000", "requests:      999");
        assert_eq!(
            complaint(&lost),
            "did not print what it must (expect: Complete requests: +1000\\n); its last words: Complete \
             requests:      999 | Failed requests:        0 | Requests per second:    4672.92 [#/sec] (mean)"
        );
        assert!(complaint("").ends_with("; it printed nothing"));
    }

    #[test]
    fn a_metric_is_there_and_a_finite_number() {
        assert!(complaint(&AB.replace("Requests per", "Answers per")).starts_with("printed no metric rps ("));
        for wrong in ["nan", "inf", "n/a", "4,672"] {
            let text = AB.replace("4672.92", wrong);
            let right = format!("printed `{wrong}` for its metric rps, which is not a number");
            assert_eq!(complaint(&text), right);
        }
    }

    #[test]
    fn nothing_asked_is_nothing_wrong() {
        assert_eq!(WorkloadStep::default().judge("whatever").unwrap(), []);
    }

    #[test]
    fn words_are_clipped_and_harmless() {
        let log = format!("{}\n\x1b[2Jbye\n", "x".repeat(500));
        assert_eq!(last_lines(&log), format!("{} | [2Jbye", "x".repeat(WIDTH)));
    }
}
