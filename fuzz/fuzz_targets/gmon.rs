//! `gmon.out` of either format and of every kind of target, and the profile that it comes to.
#![no_main]

use kerntune_convert::gcda::ByteOrder;
use kerntune_convert::gmon::{import, Gmon, Target};
use kerntune_profile::{Address, FunctionIndex, Symbol};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for byte_order in [ByteOrder::Little, ByteOrder::Big] {
        for wide in [false, true] {
            let target = Target { byte_order, wide };
            let Ok(gmon) = Gmon::parse(bytes, target) else { continue };
            let again = gmon.to_bytes(target);
            assert_eq!(Gmon::parse(&again, target).expect("what we write is read").to_bytes(target), again);
            let symbols = (0..4)
                .map(|at| Symbol {
                    function: FunctionIndex(at),
                    name: at.to_string(),
                    address: Address(u64::from(at) << 12),
                    size: 1 << 12,
                    file: None,
                    module: None,
                })
                .collect();
            let _ = import(&[gmon], symbols, "fuzz");
        }
    }
});
