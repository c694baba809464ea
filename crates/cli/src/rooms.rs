//! The rooms of this build: crates with commands and formats that few users need. Each is a feature
//! of this crate.

use kerntune_command::Room;

/// All rooms, in the order of the overview.
pub static ROOMS: &[&Room] = &[
    #[cfg(feature = "matrix")]
    &kerntune_matrix::ROOM,
    #[cfg(feature = "fleet")]
    &kerntune_fleet::ROOM,
    #[cfg(feature = "deploy")]
    &kerntune_deploy::ROOM,
    #[cfg(feature = "champsim")]
    &kerntune_champsim::ROOM,
    #[cfg(feature = "papers")]
    &kerntune_paper::ROOM,
    #[cfg(feature = "mcrae")]
    &kerntune_mcrae::ROOM,
];
