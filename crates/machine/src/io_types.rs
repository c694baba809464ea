//! Where requests to block devices and network packets pass, and where the kernel keeps what is known of them.

use kerntune_kernel::{Function, Structures};
use kerntune_trace::io::{IoSpec, PacketLayout, RequestLayout};
use kerntune_trace::Probe;

/// Members that are asked for, as [`Structures`] names them.
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

/// What passes a function, by its name in kernels from 6.1 on.
fn passes(name: &str) -> Option<Probe> {
    let (name, copy) = name.split_once('.').unwrap_or((name, ""));
    // A copy for constant arguments has the others where they were, as the first is never constant. `foo.isra.0` has not.
    if !copy.split('.').all(|part| part == "constprop" || part.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    Some(match name {
        "blk_mq_start_request" => Probe::Issue,
        "blk_mq_end_request" | "__blk_mq_end_request" => Probe::Complete,
        "blk_mq_end_request_batch" => Probe::CompleteBatch,
        "blk_mq_free_request" | "__blk_mq_free_request" => Probe::Release,
        "__dev_queue_xmit" => Probe::Send,
        "__netif_receive_skb_core" => Probe::Receive,
        _ => return None,
    })
}

/// What the recorder is told of a kernel: of requests, and of packets, only if all that it takes is there.
pub(crate) fn io_spec(functions: &[Function], structures: &Structures) -> Option<IoSpec> {
    let has = |wanted: Probe| functions.iter().any(|f| passes(&f.name) == Some(wanted));
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
        requests: (has(Probe::Issue) && has(Probe::Complete)).then(requests).flatten(),
        packets: (has(Probe::Send) && has(Probe::Receive)).then(packets).flatten(),
    };
    (spec != IoSpec::default()).then_some(spec)
}

/// The probe of a function, if what passes it is to be seen.
pub(crate) fn probe(name: &str, spec: Option<&IoSpec>) -> Option<Probe> {
    let spec = spec?;
    passes(name).filter(|probe| match probe {
        Probe::Send | Probe::Receive => spec.packets.is_some(),
        _ => spec.requests.is_some(),
    })
}

/// Whether a kernel has functions that requests or packets pass.
pub fn has_io(functions: &[Function]) -> bool {
    functions.iter().any(|function| passes(&function.name).is_some())
}

fn at(structures: &Structures, name: &str) -> Option<u32> {
    structures.get(name).and_then(|at| u32::try_from(*at).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(names: &[&str]) -> Vec<Function> {
        let function = |name: &&str| Function {
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
        let all: Structures = MEMBERS.iter().zip(0..).map(|((s, m), at)| (format!("{s}.{m}"), at)).collect();
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
        assert_eq!(probe("__dev_queue_xmit", spec.as_ref()), Some(Probe::Send));
        assert_eq!(io_spec(&names, &Structures::new()), None);
        assert!(io_spec(&names[..3], &all).unwrap().packets.is_none(), "one direction alone");
    }

    #[test]
    fn arguments_are_where_the_function_has_them() {
        assert_eq!(passes("__netif_receive_skb_core.constprop.0"), Some(Probe::Receive));
        for other in ["__netif_receive_skb_core.isra.0", "blk_mq_end_request.cold", "blk_mq_start_requests"] {
            assert_eq!(passes(other), None, "{other}");
        }
    }
}
