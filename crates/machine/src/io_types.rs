//! Functions that block requests and network packets pass, and the offsets of what the kernel knows
//! about them.

use kerntune_kernel::{KernelFunction, StructureOffsets};
use kerntune_trace::io::{IoSpec, PacketLayout, RequestLayout};
use kerntune_trace::ProbeKind;

/// Structure members, as [`StructureOffsets`] names them.
pub(crate) const MEMBERS: [(&str, &str); 11] = [
    ("request", "q"),
    ("request", "cmd_flags"),
    ("request", "__data_len"),
    ("request", "__sector"),
    ("request", "rq_next"),
    ("io_comp_batch", "req_list"),
    ("request_queue", "disk"),
    ("gendisk", "disk_name"),
    ("sk_buff", "len"),
    ("sk_buff", "dev"),
    ("net_device", "name"),
];

/// Returns what passes a function, by its name in kernels since 6.1.
fn passes(name: &str) -> Option<ProbeKind> {
    let (name, copy) = name.split_once('.').unwrap_or((name, ""));
    // A `.constprop` copy keeps the arguments' registers, since the first argument is never
    // constant; `foo.isra.0` does not.
    if !copy.split('.').all(|part| part == "constprop" || part.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    Some(match name {
        "blk_mq_start_request" => ProbeKind::Issue,
        "blk_mq_end_request" | "__blk_mq_end_request" => ProbeKind::Complete,
        "blk_mq_end_request_batch" => ProbeKind::CompleteBatch,
        "blk_mq_free_request" | "__blk_mq_free_request" => ProbeKind::Release,
        "__dev_queue_xmit" => ProbeKind::Send,
        "__netif_receive_skb_core" => ProbeKind::Receive,
        _ => return None,
    })
}

/// Returns the recorder's description of block requests and network packets; each only if all its
/// offsets are known.
pub(crate) fn io_spec(functions: &[KernelFunction], structures: &StructureOffsets) -> Option<IoSpec> {
    let has = |wanted: ProbeKind| functions.iter().any(|f| passes(&f.name) == Some(wanted));
    let requests = || {
        Some(RequestLayout {
            queue: at(structures, "request.q")?,
            flags: at(structures, "request.cmd_flags")?,
            bytes: at(structures, "request.__data_len")?,
            sector: at(structures, "request.__sector")?,
            next: at(structures, "request.rq_next")?,
            batch: at(structures, "io_comp_batch.req_list")?,
            disk: at(structures, "request_queue.disk")?,
            disk_name: at(structures, "gendisk.disk_name")?,
        })
    };
    let packets = || {
        Some(PacketLayout {
            bytes: at(structures, "sk_buff.len")?,
            device: at(structures, "sk_buff.dev")?,
            device_name: at(structures, "net_device.name")?,
        })
    };
    let spec = IoSpec {
        requests: (has(ProbeKind::Issue) && has(ProbeKind::Complete)).then(requests).flatten(),
        packets: (has(ProbeKind::Send) && has(ProbeKind::Receive)).then(packets).flatten(),
    };
    (spec != IoSpec::default()).then_some(spec)
}

/// Returns the probe of a function, if the description covers it.
pub(crate) fn probe(name: &str, spec: Option<&IoSpec>) -> Option<ProbeKind> {
    let spec = spec?;
    passes(name).filter(|probe| match probe {
        ProbeKind::Send | ProbeKind::Receive => spec.packets.is_some(),
        _ => spec.requests.is_some(),
    })
}

/// Checks whether a kernel has functions that requests or packets pass.
pub fn has_io(functions: &[KernelFunction]) -> bool {
    functions.iter().any(|function| passes(&function.name).is_some())
}

fn at(structures: &StructureOffsets, name: &str) -> Option<u32> {
    structures.get(name).and_then(|at| u32::try_from(*at).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(names: &[&str]) -> Vec<KernelFunction> {
        let function = |name: &&str| KernelFunction {
            address: 1,
            size: 1,
            name: (*name).into(),
            aliases: Vec::new(),
            file: None,
            part_of: None,
            is_code_label: false,
        };
        names.iter().map(function).collect()
    }

    #[test]
    fn nothing_is_said_of_what_cannot_be_read() {
        let all: StructureOffsets =
            MEMBERS.iter().zip(0..).map(|((s, m), at)| (format!("{s}.{m}"), at)).collect();
        let names = functions(&[
            "blk_mq_start_request",
            "blk_mq_end_request",
            "__dev_queue_xmit",
            "__netif_receive_skb_core.constprop.0",
        ]);
        let spec = io_spec(&names, &all).unwrap();
        assert_eq!(spec.requests.unwrap().disk_name, 7);
        assert_eq!(spec.packets.unwrap().bytes, 8);
        let mut less = all.clone();
        less.remove("request.q");
        let spec = io_spec(&names, &less);
        assert!(spec.unwrap().requests.is_none() && spec.unwrap().packets.is_some());
        assert_eq!(probe("blk_mq_start_request", spec.as_ref()), None);
        assert_eq!(probe("__dev_queue_xmit", spec.as_ref()), Some(ProbeKind::Send));
        assert_eq!(io_spec(&names, &StructureOffsets::new()), None);
        assert!(io_spec(&names[..3], &all).unwrap().packets.is_none(), "one direction alone");
    }

    #[test]
    fn arguments_are_where_the_function_has_them() {
        assert_eq!(passes("__netif_receive_skb_core.constprop.0"), Some(ProbeKind::Receive));
        for other in ["__netif_receive_skb_core.isra.0", "blk_mq_end_request.cold", "blk_mq_start_requests"] {
            assert_eq!(passes(other), None, "{other}");
        }
    }
}
