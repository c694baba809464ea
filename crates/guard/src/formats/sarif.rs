//! SARIF, the Static Analysis Results Interchange Format (pure).
//!
//! Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".

use super::findings;
use crate::finding::FindingRule;
use crate::suite::CheckSuite;
use serde_json::{json, Value};
use std::path::Path;

/// Renders the findings of a check as one run.
pub fn render(suites: &[CheckSuite], guard_file: &Path) -> String {
    let rules: Vec<Value> = FindingRule::ALL
        .iter()
        .map(|rule| json!({ "id": rule.name(), "shortDescription": { "text": rule.description() } }))
        .collect();
    let result = |of: super::NamedFinding| {
        let place = of.place(guard_file);
        let text = format!("{}: {}\n{}", of.title(), of.finding.message, of.finding.details);
        json!({
            "ruleId": of.finding.rule.name(),
            "ruleIndex": FindingRule::ALL.iter().position(|rule| *rule == of.finding.rule),
            "level": "error",
            "message": { "text": text.trim_end() },
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": { "uri": uri(&place.file) },
                    "region": { "startLine": place.line },
                },
            }],
            "partialFingerprints": { "row/v1": of.fingerprint() },
        })
    };
    let results: Vec<Value> = findings(suites).map(result).collect();
    let document = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "kerntune guard", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "results": results,
        }],
    });
    format!("{document:#}\n")
}

/// Returns a path as a URI reference: absolute paths as `file:`, others relative.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~+@".contains(&byte);
    let encoded: String = path
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    match encoded.starts_with('/') {
        true => format!("file://{encoded}"),
        false => encoded,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::suites;
    use super::*;

    #[test]
    fn every_finding_is_a_result_of_a_rule() {
        let found: Value = serde_json::from_str(&render(&suites(), Path::new("guard.toml"))).unwrap();
        let run = &found["runs"][0];
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        for result in results {
            let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], result["ruleId"]);
        }
        let place = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(
            (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
            (&"src/a%2Cb.c".into(), &7.into())
        );
    }

    #[test]
    fn a_path_is_a_uri() {
        assert_eq!(uri("/src/a b.c"), "file:///src/a%20b.c");
        assert_eq!(uri("src/ä.c"), "src/%C3%A4.c");
    }
}
