//! Cgroups for readers: the container or the unit that a path names.

/// Returns what a cgroup's path says of its container or unit: `docker 0123456789ab`,
/// `pod 7f2c… containerd 0123456789ab`, `nginx.service`; `None` for other paths.
pub(crate) fn container(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let pod = parts.iter().find_map(|part| pod(part));
    // Containers have cgroups of their own below: the innermost name that is one counts.
    let container = (1..=parts.len()).rev().find_map(|end| of_parts(&parts[..end]));
    match (pod, container) {
        (Some(pod), Some(container)) => Some(format!("pod {pod} {container}")),
        (Some(pod), None) => Some(format!("pod {pod}")),
        (None, Some(container)) => Some(container),
        (None, None) => parts.iter().rev().find_map(|part| unit(part)),
    }
}

/// Runtimes by the prefix of a scope, `docker-ID.scope`.
const SCOPES: [(&str, &str); 5] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("crio-", "cri-o"),
    ("nerdctl-", "nerdctl"),
];

fn of_parts(parts: &[&str]) -> Option<String> {
    let (last, before) = parts.split_last()?;
    let scope = last.strip_suffix(".scope").unwrap_or(last);
    if let Some((runtime, id)) =
        SCOPES.iter().find_map(|(prefix, runtime)| Some((runtime, id(scope.strip_prefix(prefix)?)?)))
    {
        return Some(format!("{runtime} {id}"));
    }
    if let Some(name) = last.strip_prefix("lxc.payload.").filter(|name| !name.is_empty()) {
        return Some(format!("lxc {name}"));
    }
    if let Some(name) = scope.strip_prefix("machine-").filter(|_| last.ends_with(".scope")) {
        return Some(format!("machine {}", unescape(name)));
    }
    if let Some(name) = last.strip_prefix("systemd-nspawn@").and_then(|name| name.strip_suffix(".service")) {
        return Some(format!("nspawn {}", unescape(name)));
    }
    let above = before.last()?;
    match *above {
        "docker" => Some(format!("docker {}", id(last)?)),
        "lxc" => Some(format!("lxc {last}")),
        _ if before.iter().any(|part| part.starts_with("kubepods")) => {
            Some(format!("container {}", id(last)?))
        }
        _ => None,
    }
}

/// Returns the first twelve digits of a container's id of 64 digits, as runtimes print it.
fn id(text: &str) -> Option<&str> {
    let is_id = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.get(..12).filter(|_| is_id)
}

/// Returns the id of a Kubernetes pod: `pod7f2c…` or `kubepods-burstable-pod7f2c….slice`.
fn pod(part: &str) -> Option<String> {
    let name = part.strip_suffix(".slice").unwrap_or(part);
    let id = match name.starts_with("kubepods") {
        true => name.split_once("-pod")?.1,
        false => name.strip_prefix("pod")?,
    };
    let is_id =
        id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'-' | b'_'));
    is_id.then(|| id.replace('_', "-"))
}

/// Returns the name of a unit of systemd.
fn unit(part: &str) -> Option<String> {
    let kinds = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];
    let is_unit = kinds.iter().any(|kind| part.strip_suffix(kind).is_some_and(|name| !name.is_empty()));
    is_unit.then(|| unescape(part))
}

/// Decodes `\x2d` and the like in a unit's name.
fn unescape(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("\\x") {
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        text += before;
        match byte.filter(u8::is_ascii_graphic) {
            Some(byte) => {
                text.push(char::from(byte));
                rest = &after[2..];
            }
            None => {
                text += "\\x";
                rest = after;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_and_units_are_known_by_their_paths() {
        let hex = "0123456789abcdef".repeat(4);
        let uid = "7f2c1e30-0f3a-4c57-9d1a-8a4b6c2d1e0f";
        let cases = [
            (format!("/system.slice/docker-{hex}.scope"), Some("docker 0123456789ab".to_owned())),
            (format!("/system.slice/docker-{hex}.scope/init"), Some("docker 0123456789ab".into())),
            (format!("/docker/{hex}"), Some("docker 0123456789ab".into())),
            (format!("/machine.slice/libpod-{hex}.scope/container"), Some("podman 0123456789ab".into())),
            (
                format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/cri-containerd-{hex}.scope",
                    uid.replace('-', "_")
                ),
                Some(format!("pod {uid} containerd 0123456789ab")),
            ),
            (
                format!("/kubepods/besteffort/pod{uid}/{hex}"),
                Some(format!("pod {uid} container 0123456789ab")),
            ),
            ("/lxc.payload.web/system.slice/nginx.service".into(), Some("lxc web".into())),
            (r"/machine.slice/machine-qemu\x2d1\x2dvm.scope".into(), Some("machine qemu-1-vm".into())),
            ("/machine.slice/systemd-nspawn@deb.service/payload".into(), Some("nspawn deb".into())),
            ("/system.slice/nginx.service".into(), Some("nginx.service".into())),
            (
                "/user.slice/user-0.slice/session-2.scope".into(),
                Some("session-2.scope".into()),
            ),
            ("/system.slice/docker-short.scope".into(), Some("docker-short.scope".into())),
            (r"/a\xzz.service".into(), Some(r"a\xzz.service".into())),
            ("/".into(), None),
            ("/process_api/14b4".into(), None),
        ];
        for (path, name) in cases {
            assert_eq!(container(&path), name, "{path}");
        }
    }
}
