//! The function as a whole.

use super::rig::{DATA, DMA, R1, READ, Rig};
use super::{Function, Identity};
use crate::sdhci::FlatMemory;
use emmc_units::Instant;

#[test]
fn memory_is_accessible_only_after_it_is_enabled() {
    let mut rig = Rig::ready(Identity::Gl9763eWithoutQueue);
    rig.function.write_config(4, 2, 2);
    rig.prepare(1, 0x1000);
    rig.descriptor(0x1000, 4, true, 512, 0x2000);
    let failed = rig.command(8, 0, R1 | DATA, DMA | READ);
    assert_eq!(failed.map_err(|status| status >> 25), Err(1));
    assert!(rig.memory.0.borrow()[0x2000..].iter().all(|byte| *byte == 0));
}

#[test]
fn only_the_identity_with_a_queue_has_queue_registers() {
    for (identity, version) in [(Identity::Gl9763e, 0x510), (Identity::Gl9763eWithoutQueue, 0), (Identity::Generic, 0)]
    {
        let mut function = Function::new(identity);
        assert_eq!(function.read(0x200, 4, Instant::START), version, "{identity:?}");
        function.write(0x52c, 4, 0x100, Instant::START);
        assert_eq!(function.read(0x52d, 1, Instant::START), 1);
    }
}

#[test]
fn random_values_in_all_registers_cause_no_panic() {
    for identity in [Identity::Gl9763e, Identity::Generic] {
        let mut rig = Rig::ready(identity);
        rig.memory = FlatMemory::new(0x1_0000);
        for value in [0, u64::MAX, 0x5555_5555_5555_5555, 0x1234_5678_9abc_def0] {
            for offset in (0..0x1000).step_by(1) {
                for bytes in [1, 2, 4, 8] {
                    rig.write(offset, bytes, value);
                    rig.read(offset, bytes);
                }
                for _ in 0..4 {
                    rig.next();
                }
            }
        }
        rig.function.reset();
        rig.set_up();
        rig.identify();
    }
}
