use super::*;

const START: Instant = Instant::START;

fn program(nand: &mut Nand, block: u32, now: Instant) -> Instant {
    let page = nand.block(block).next_page;
    nand.program(block, page, &[1, 2], None, now).unwrap()
}

fn without(change: impl FnOnce(&mut NandConfig)) -> Nand {
    let mut config = config();
    change(&mut config);
    flash_of(&config, StoredContent::Nothing)
}

#[test]
fn planes_of_a_die_program_together() {
    let mut nand = flash(StoredContent::Nothing);
    // Pages 0 and 1 are planes of die 0: 10 us each to send, one program.
    assert_eq!(program(&mut nand, 0, START), us(510));
    assert_eq!(program(&mut nand, 0, START), us(520));
    // Dies 0 and 1 program at the same time; the bus is shared.
    assert_eq!(program(&mut nand, 0, START), us(530));
    assert_eq!(program(&mut nand, 0, START), us(540));
    // The upper row waits for the die, and takes longer.
    assert_eq!(program(&mut nand, 0, START), us(520 + 1500));
    assert_eq!(nand.quiet_at(), us(2020));
}

#[test]
fn multi_plane_programs_need_one_time_and_one_die() {
    let mut nand = flash(StoredContent::Nothing);
    assert_eq!(program(&mut nand, 0, START), us(510));
    assert_eq!(program(&mut nand, 0, us(1)), us(1010));
    let mut nand = flash(StoredContent::Nothing);
    assert_eq!(program(&mut nand, 0, START), us(510));
    assert_eq!(program(&mut nand, 1, START), us(1010));
    let mut nand = without(|config| config.multi_plane = false);
    assert_eq!(program(&mut nand, 0, START), us(510));
    assert_eq!(program(&mut nand, 0, START), us(1010));
    // Less is programmed while a block is erased.
    let units = nand.units_in_erase();
    assert_eq!(flash(StoredContent::Nothing).units_in_erase(), 2 * units);
}

#[test]
fn a_cached_program_is_sent_while_the_die_is_busy() {
    for (cached, third) in [(true, 500 + 10 + 1500), (false, 500 + 10 + 10 + 1500)] {
        let mut nand = without(|config| {
            (config.dies, config.planes, config.pages_per_block) = (1, 1, 32);
            config.cached_program = cached;
        });
        assert_eq!(program(&mut nand, 0, START), us(510));
        assert_eq!(program(&mut nand, 0, START), us(third));
    }
}

#[test]
fn channels_transfer_in_parallel() {
    let mut nand = without(|config| config.channels = 2);
    assert_eq!([(); 4].map(|()| program(&mut nand, 0, START)), [us(510), us(520), us(510), us(520)]);
}

#[test]
fn a_read_senses_then_sends_and_waits_for_its_die() {
    let mut nand = flash(StoredContent::Nothing);
    assert_eq!(nand.read(0, 0, 1000, START), Ok(us(60)));
    assert_eq!(nand.read(0, 1, 500, START), Ok(us(60 + 50 + 5)));
    // The other die senses meanwhile and waits for the bus alone.
    assert_eq!(nand.read(0, 2, 500, us(60)), Ok(us(120)));
    nand.set_mode(1, CellMode::Pslc);
    assert_eq!(nand.read(1, 2, 500, us(200)), Ok(us(230)));
}

#[test]
fn an_erase_takes_every_die_and_waits_for_all() {
    let mut nand = flash(StoredContent::Nothing);
    program(&mut nand, 0, START);
    assert_eq!(nand.erase(1, START), Ok(us(510 + 3000)));
    assert_eq!(nand.read(0, 2, 0, START), Ok(us(3510 + 50)));
    nand.set_mode(2, CellMode::Pslc);
    assert_eq!(nand.erase(2, us(10_000)), Ok(us(12_000)));
}

#[test]
fn times_are_uniform_within_their_spread() {
    let mut nand = without(|config| {
        (config.dies, config.planes) = (1, 1);
        config.native.time_spread = 0.1;
        config.native.endurance = 100_000;
    });
    let mut now = START;
    let (mut least, mut most, mut sum) = (u64::MAX, 0, 0);
    for _ in 0..4000 {
        let done = nand.erase(0, now).unwrap();
        let took = done.since(now).0;
        (least, most, sum) = (least.min(took), most.max(took), sum + took);
        now = done;
    }
    assert!((2_700_000..2_702_000).contains(&least), "{least}");
    assert!((3_298_000..3_300_000).contains(&most), "{most}");
    assert!((2_990_000..3_010_000).contains(&(sum / 4000)), "{sum}");
}
