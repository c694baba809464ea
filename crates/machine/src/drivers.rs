//! Kernel modules that a guest loads: those that its workload names, and its devices' drivers.

use crate::request::MachineDemands;
use crate::{Error, Result};
use kerntune_guest::{lacking_options, Disk, GuestModule, GuestModules, Workload};
use kerntune_kernel::{module_name, Kernel, KernelModule};
use kerntune_work::IoContext;
use std::fs;

/// Finds the modules that a workload needs on this kernel, with their parameters on the kernel's
/// command line; `None` if it needs none.
///
/// # Errors
/// A module that the kernel lacks, or that is of another kernel.
pub fn guest_modules(kernel: &Kernel, workload: &Workload) -> Result<Option<GuestModules>> {
    let has_devices = workload.disk.is_some() || workload.network_cards > 0;
    let drivers = match has_devices {
        true => workload.driver_modules(&config(kernel)?),
        false => Vec::new(),
    };
    if drivers.is_empty() && workload.modules.is_empty() {
        return Ok(None);
    }
    let all = kernel.modules()?;
    let names = drivers.into_iter().chain(workload.modules.iter().map(String::as_str));
    let loaded = all.load(names)?;
    if loaded.is_empty() {
        return Ok(None);
    }
    let of_disk = workload.disk.as_ref().map(Disk::kernel_options).unwrap_or_default();
    let command_line = format!("{of_disk} {}", workload.append);
    let module = |KernelModule { name, path, bytes, depends }| {
        let parameters = parameters(&command_line, &name);
        GuestModule { name, path, bytes, depends, parameters }
    };
    let modules = loaded.into_iter().map(module).collect();
    Ok(Some(GuestModules { release: all.release().into(), modules }))
}

/// Options of a kernel for a machine with several NUMA nodes.
const NUMA: [&str; 2] = ["CONFIG_NUMA=y", "CONFIG_ACPI_NUMA=y"];

/// Checks that the kernel has what the machine and the workload need, built in or as modules: drivers
/// of the disk, nodes, options that the workload names.
pub(crate) fn check(kernel: &Kernel, demands: &MachineDemands) -> Result<()> {
    let MachineDemands { disk, nodes, kernel_config, .. } = demands;
    if disk.is_none() && *nodes == 1 && kernel_config.is_empty() {
        return Ok(());
    }
    let config = config(kernel)?;
    let has = |line: &&str| config.lines().any(|one| one == *line);
    let nodes = match nodes {
        1 => Vec::new(),
        _ => NUMA.into_iter().filter(|line| !has(line)).collect(),
    };
    let kind = disk.map_or("", |disk| disk.kind.name());
    let needs = [
        (
            disk.map_or(Vec::new(), |disk| disk.lacking(&config)),
            format!("the workload's disk ({kind}) needs"),
        ),
        (nodes, "a machine with several `nodes` needs".into()),
        (lacking_options(kernel_config, &config), "the workload's `kernel_config` asks for".into()),
    ];
    match needs.into_iter().find(|(lacking, _)| !lacking.is_empty()) {
        None => Ok(()),
        Some((lacking, needed_by)) => {
            let (kernel, lacking) = (kernel.manifest.label.clone(), lacking.join(", "));
            Err(Error::LacksOptions { kernel, lacking, needed_by })
        }
    }
}

fn config(kernel: &Kernel) -> Result<String> {
    let config = kernel.config();
    Ok(fs::read_to_string(&config).at("read", &config)?)
}

/// Returns a module's parameters on a kernel command line, as `modprobe` takes them from there: the
/// kernel itself gives them only to what is built in.
fn parameters(command_line: &str, module: &str) -> String {
    let of_module = |word: &str| {
        let (name, parameter) = word.split_once('.')?;
        (module_name(name) == module).then(|| parameter.to_owned())
    };
    command_line.split_whitespace().filter_map(of_module).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_has_its_parameters_of_the_command_line() {
        let line = "brd.rd_nr=1 quiet virtio-net.napi_tx=0 brd.rd_size=65536 brd.max_part=a.b";
        assert_eq!(parameters(line, "brd"), "rd_nr=1 rd_size=65536 max_part=a.b");
        assert_eq!(parameters(line, "virtio_net"), "napi_tx=0");
        assert_eq!(parameters(line, "ext4"), "");
    }
}
