use super::*;

/// Reproducible pseudo-random arguments (xorshift), after values that reveal mistakes.
fn arguments() -> impl Iterator<Item = u32> {
    let edges = [0, 1, 2, 3, u32::MAX, 0x8000_0000, 0x8000_0001, 0x8000_8000, PRE_IDLE, BOOT, 0xffff_0000, 0xffff];
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let random = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    });
    edges.into_iter().chain((0..32).map(|bit| 1 << bit)).chain(random.take(500))
}

/// A byte written with command set 1, as Linux and U-Boot do it (`mmc_switch`, EXT_CSD_CMD_SET_NORMAL).
fn write_byte(index: u8, value: u8) -> Switch {
    Switch { access: SwitchAccess::WriteByte, index, value, cmd_set: 1 }
}

#[test]
fn every_index_and_argument_round_trips() {
    let decoders = [Command::decode, Command::decode_app];
    for kind in [CardKind::Emmc, CardKind::Sd] {
        for decode in decoders {
            for index in 0..=255 {
                for argument in arguments() {
                    let command = decode(index, argument, kind);
                    let (again, canonical) = command.encode();
                    assert_eq!(again, index, "{command}");
                    assert_eq!(decode(index, canonical, kind), command);
                    let special = matches!(index, 0) && canonical != 0;
                    assert!(special || canonical & !argument == 0, "{command} invents bits of {argument:#010x}");
                }
            }
        }
    }
}

#[test]
fn only_stuff_bits_are_dropped() {
    // The bits of each index that carry something, of eMMC; what is not listed carries all 32 or none.
    for (index, carried) in [
        (3, 0xffff_0000),
        (4, 0xffff_0000),
        (5, 0xffff_8000),
        (6, 0x03ff_ff07),
        (7, 0xffff_0000),
        (8, 0),
        (12, 0xffff_0001),
        (13, 0xffff_8001),
        (17, u32::MAX),
        (23, 0xff00_ffff),
        (25, u32::MAX),
        (38, u32::MAX),
        (39, u32::MAX),
        (44, 0xff9f_ffff),
        (45, u32::MAX),
        (46, 0x001f_0000),
        (47, 0x001f_0000),
        (53, 0xffff_ff00),
        (55, 0xffff_0000),
        (56, u32::MAX),
        (62, u32::MAX),
        (37, u32::MAX),
    ] {
        for argument in arguments() {
            let canonical = Command::decode(index, argument, CardKind::Emmc).argument();
            assert_eq!(canonical, argument & carried, "CMD{index} {argument:#010x}");
        }
    }
    for (index, carried) in [
        (3, 0),
        (6, 0x80ff_ffff),
        (8, 0xfff),
        (12, 0),
        (13, 0xffff_8000),
        (22, 0x3f),
        (23, u32::MAX),
        (44, 0x7f9f_ffff),
        (48, u32::MAX),
    ] {
        for argument in arguments() {
            let canonical = Command::decode(index, argument, CardKind::Sd).argument();
            assert_eq!(canonical, argument & carried, "CMD{index} {argument:#010x}");
        }
    }
}

#[test]
fn switch_arguments_match_linux_and_u_boot() {
    // PARTITION_SETTING_COMPLETED, ERASE_GROUP_DEF, HS_TIMING, as they stand in kernel and U-Boot logs.
    for (argument, switch) in
        [(0x039b_0101, write_byte(155, 1)), (0x03af_0101, write_byte(175, 1)), (0x03b7_0201, write_byte(183, 2))]
    {
        let command = Command::decode(6, argument, CardKind::Emmc);
        assert_eq!(command, Command::Switch(switch));
        assert_eq!(command.encode(), (6, argument));
    }
    // U-Boot sends command set 0.
    let bus_width = Switch { cmd_set: 0, ..write_byte(183, 0) };
    assert_eq!(Command::decode(6, 0x03b7_0000, CardKind::Emmc), Command::Switch(bus_width));

    let with = |access| Switch { access, index: 167, value: 0b0110, cmd_set: 1 };
    assert_eq!(with(SwitchAccess::SetBits).apply(0b0011), Some(0b0111));
    assert_eq!(with(SwitchAccess::ClearBits).apply(0b0011), Some(0b0001));
    assert_eq!(with(SwitchAccess::WriteByte).apply(0b0011), Some(0b0110));
    assert_eq!(with(SwitchAccess::CommandSet).apply(0b0011), None);
}

#[test]
fn erase_arguments_are_those_of_mmc_utils() {
    for (argument, erase, by_block) in [
        (0x0000_0000, Erase::Erase, false),
        (0x0000_0001, Erase::Trim, true),
        (0x0000_0003, Erase::Discard, true),
        (0x8000_0000, Erase::SecureErase, false),
        (0x8000_0001, Erase::SecureTrimStep1, true),
        (0x8000_8000, Erase::SecureTrimStep2, true),
        (0x0000_0002, Erase::Other(2), false),
    ] {
        assert_eq!(Command::decode(38, argument, CardKind::Emmc), Command::Erase(erase));
        assert_eq!((erase.encode(), erase.is_by_write_block()), (argument, by_block));
    }
    assert_eq!(Command::decode(38, 1, CardKind::Sd), Command::Sd(SdCommand::Erase(SdErase::Discard)));
}

#[test]
fn transfers_carry_their_flags() {
    let reliable = SetBlockCount { blocks: 8, reliable_write: true, ..SetBlockCount::default() };
    assert_eq!(Command::decode(23, 0x8000_0008, CardKind::Emmc), Command::SetBlockCount(reliable));
    let packed = SetBlockCount { blocks: 0x20, packed: true, ..SetBlockCount::default() };
    assert_eq!(Command::decode(23, 0x4000_0020, CardKind::Emmc), Command::SetBlockCount(packed));
    assert_eq!(
        Command::decode(23, 0x4000_0020, CardKind::Sd),
        Command::Sd(SdCommand::SetBlockCount { blocks: 0x4000_0020 })
    );
    let task = QueuedTaskParams { blocks: 256, task_id: 31, read: true, ..QueuedTaskParams::default() };
    assert_eq!(Command::decode(44, 0x401f_0100, CardKind::Emmc), Command::QueuedTaskParams(task));
    assert_eq!(
        Command::decode(48, 0x0003_0002, CardKind::Emmc),
        Command::CmdqTaskMgmt(TaskManagement::DiscardTask { task_id: 3 })
    );
}

#[test]
fn reset_has_three_meanings_on_emmc_and_one_on_sd() {
    for (argument, emmc) in
        [(0, Command::GoIdleState), (PRE_IDLE, Command::GoPreIdleState), (BOOT, Command::BootInitiation)]
    {
        assert_eq!(Command::decode(0, argument, CardKind::Emmc), emmc);
        assert_eq!(Command::decode(0, argument, CardKind::Sd), Command::GoIdleState);
    }
    assert_eq!(Command::decode(0, 1, CardKind::Emmc), Command::GoIdleState);
}

#[test]
fn application_commands_follow_cmd55_on_sd_only() {
    let op_cond = Command::decode_app(41, 0x40ff_8000, CardKind::Sd);
    assert_eq!(op_cond, Command::App(AppCommand::SdSendOpCond { ocr: Ocr(0x40ff_8000) }));
    assert_eq!(op_cond.to_string(), "ACMD41 SD_SEND_OP_COND 0x40ff8000");
    // What is no application command counts as the plain one.
    let read = Command::decode_app(17, 8, CardKind::Sd);
    assert_eq!(read, Command::ReadSingleBlock { address: 8 });
    assert_eq!(Command::decode_app(6, 0x03b7_0101, CardKind::Emmc), Command::Switch(write_byte(183, 1)));
}

#[test]
fn frames_are_the_bits_on_the_line() {
    for (command, frame) in [
        (Command::GoIdleState, [0x40, 0, 0, 0, 0, 0x95]),
        (Command::decode(8, 0x1aa, CardKind::Sd), [0x48, 0, 0, 1, 0xaa, 0x87]),
        (Command::AppCmd { rca: 0 }, [0x77, 0, 0, 0, 0, 0x65]),
        (Command::decode_app(41, 0x4000_0000, CardKind::Sd), [0x69, 0x40, 0, 0, 0, 0x77]),
    ] {
        assert_eq!(command.frame(), frame, "{command}");
    }
}

#[test]
fn command_specifications_are_consistent() {
    for kind in [CardKind::Emmc, CardKind::Sd] {
        for decode in [Command::decode, Command::decode_app] {
            for index in 0..64 {
                for argument in [0, 1, PRE_IDLE, BOOT] {
                    let spec = decode(index, argument, kind).spec();
                    assert_eq!(spec.index, index);
                    assert_eq!(spec.data.is_some(), spec.kind == CommandKind::Adtc, "{}", spec.name);
                    assert!(spec.kind != CommandKind::Bc || spec.response == ResponseKind::None, "{}", spec.name);
                    assert!(spec.class.is_none_or(|class| class < 12));
                }
            }
        }
    }
    let erase = Command::Erase(Erase::Discard).spec();
    assert_eq!((erase.class, erase.response, erase.name), (Some(5), ResponseKind::R1b, "ERASE"));
    assert_eq!(Command::GenCmd { argument: 1 }.spec().data, Some(DataDirection::Read));
    assert_eq!(Command::GenCmd { argument: 0 }.spec().data, Some(DataDirection::Write));
    assert_eq!(Command::SendExtCsd.to_string(), "CMD8 SEND_EXT_CSD 0x00000000");
}
