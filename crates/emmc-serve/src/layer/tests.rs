//! Each layer over a card in memory.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant as Wall;

use emmc_card::card::Card;
use emmc_card::device::{Area, DeviceOptions};
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_units::Instant;

use super::{Fault, Faults, Kind, Stats, parse};
use crate::block::{Block, BlockError, Export, Mapped, Request};
use crate::served::{Served, ServedOptions};

fn served() -> Arc<Served> {
    let options = DeviceOptions { keep: StoredContent::Data, seed: 1 };
    let card = Card::new(shipped::named("generic-8g").unwrap(), options).unwrap();
    Arc::new(Served::new(card, Instant::START, ServedOptions { delays: false, dilation: 1 }))
}

fn write(block: &dyn Block, offset: u64) -> Result<Instant, BlockError> {
    block.submit(Area::User, Request::Write { offset, data: &[7; 4096], through: false })
}

fn read(block: &dyn Block, offset: u64) -> Result<Instant, BlockError> {
    block.submit(Area::User, Request::Read { offset, into: &mut [0; 512] })
}

#[test]
fn faults_affect_the_given_number_of_matching_requests() {
    let faults = Faults::new(served());
    let fault =
        Fault { kind: Some(Kind::Write), from: 4096, to: Some(8192), after: 1, times: Some(2), ..Fault::default() };
    faults.inject(fault).unwrap();
    assert!(read(&faults, 4096).is_ok() && write(&faults, 0).is_ok() && write(&faults, 8192).is_ok());
    assert!(write(&faults, 4096).is_ok(), "one passes");
    for _ in 0..2 {
        assert_eq!(write(&faults, 4096), Err(BlockError::Medium("injected error of a write".into())));
    }
    assert!(write(&faults, 4096).is_ok() && faults.list().is_empty());
    faults.inject(Fault { area: Some("boot0".into()), ..Fault::default() }).unwrap();
    assert!(read(&faults, 0).is_ok());
    assert!(faults.submit(Area::Boot(0), Request::Flush).is_err());
    faults.clear();
    assert!(faults.submit(Area::Boot(0), Request::Flush).is_ok());
}

/// A range that ends beyond its area is a typing error in a number.
#[test]
fn a_fault_beyond_its_area_is_refused() {
    let faults = Faults::new(served());
    let end = faults.exports().iter().find(|export| export.name == "boot0").unwrap().size_bytes;
    let of_boot = |to: u64| Fault { area: Some("boot0".into()), to: Some(to), ..Fault::default() };
    let refused = faults.inject(of_boot(end + 1)).unwrap_err();
    assert_eq!(refused, format!("to {}: expected at most {end}, where the area ends", end + 1));
    assert!(faults.list().is_empty());
    faults.inject(of_boot(end)).unwrap();
}

/// Half of the card wraps, or is not there.
#[test]
fn a_fake_keeps_only_what_is_there() {
    let real = 1u64 << 30;
    let first_after = |layer: &str, offset: u64| {
        let fake = parse(layer, served()).unwrap();
        write(&*fake, real + 4096).unwrap();
        let mut into = [1; 512];
        fake.submit(Area::User, Request::Read { offset, into: &mut into }).unwrap();
        into[0]
    };
    assert_eq!(first_after("fake:real=1073741824", 4096), 7, "the start was overwritten");
    assert_eq!(first_after("fake:real=1073741824", real + 4096), 7);
    assert_eq!(first_after("fake:real=1073741824,window=1048576", real + 4096 - 1048576), 7);
    assert_eq!(first_after("fake:real=1073741824,beyond=zeros", real + 4096), 0);
    assert_eq!(first_after("fake:real=1073741824,beyond=ones", real + 4096), 0xff);
    assert_eq!(first_after("fake:real=1073741824,beyond=ones,buffer=65536", real + 4096), 7);
    for (layer, error) in [
        ("fake", "expected real=BYTES"),
        ("fake:real=99999999999999", "less than the user area"),
        ("fake:real=512,beyond=never", "expected wrap, zeros or ones"),
        ("fake:real=512,size=1", "expected real, beyond, window or buffer"),
    ] {
        let refused = parse(layer, served()).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains(error), "{layer}: {refused}");
    }
}

fn first_byte(block: &dyn Block, offset: u64) -> u8 {
    let mut into = [1; 512];
    block.submit(Area::User, Request::Read { offset, into: &mut into }).unwrap();
    into[0]
}

#[test]
fn a_dropped_write_is_acknowledged_and_not_made() {
    let served = served();
    let block = parse("drop:from=4096,to=8192,every=2", Arc::clone(&served) as Arc<dyn Block>).unwrap();
    let all = Request::Write { offset: 0, data: &[7; 12288], through: true };
    block.submit(Area::User, all).unwrap();
    assert_eq!([0, 4096, 8192].map(|offset| first_byte(&*block, offset)), [7; 3], "the first is made");
    let all = Request::Write { offset: 0, data: &[8; 12288], through: true };
    block.submit(Area::User, all).unwrap();
    assert_eq!([0, 4096, 8192].map(|offset| first_byte(&*block, offset)), [8, 7, 8], "as far as it is in the window");
    block.submit(Area::User, Request::Zero { offset: 4096, bytes: 512, through: false }).unwrap();
    assert_eq!(first_byte(&*block, 4096), 0, "the third is made");
    block.submit(Area::User, Request::Write { offset: 8192, data: &[9; 512], through: false }).unwrap();
    assert_eq!(first_byte(&*block, 8192), 9, "not in the window, and not counted");
    served.cut_power().unwrap();
    assert_eq!(write(&*block, 4096), Err(BlockError::PowerLost));
}

#[test]
fn what_is_volatile_is_lost_although_it_was_flushed() {
    let served = served();
    let block = parse("volatile:from=4096,bytes=4096", Arc::clone(&served) as Arc<dyn Block>).unwrap();
    let flush = || block.submit(Area::User, Request::Flush).unwrap();
    block.submit(Area::User, Request::Write { offset: 0, data: &[7; 8192], through: true }).unwrap();
    flush();
    assert_eq!([0, 4096].map(|offset| first_byte(&*block, offset)), [7; 2]);
    assert_eq!([0, 4096].map(|offset| first_byte(&*served, offset)), [7, 0], "the card has what is not in the window");
    // More than the cache holds, and a sector of it twice: what is older is on the card.
    block.submit(Area::User, Request::Write { offset: 8192, data: &[8; 512], through: false }).unwrap();
    block.submit(Area::User, Request::Write { offset: 8192, data: &[9; 512], through: false }).unwrap();
    flush();
    let of = |block: &dyn Block| [4096, 4608, 8192].map(|offset| first_byte(block, offset));
    assert_eq!((of(&*block), of(&*served)), ([7, 7, 9], [7, 0, 0]));
    block.submit(Area::User, Request::Trim { offset: 4608, bytes: 512 }).unwrap();
    assert_eq!(of(&*block), [7, 0, 9]);
    let mapped = |block: &dyn Block| block.mapped(Area::User, 8192..12288).unwrap()[0].mapped;
    assert_eq!([mapped(&*block), mapped(&*served)], [true, false]);
    // Nobody asks while the power is off.
    served.cut_power().unwrap();
    served.restore_power().unwrap();
    assert_eq!(of(&*block), of(&*served));
    assert_eq!(of(&*served), [7, 0, 0]);
    assert_eq!(first_byte(&*served, 0), 7);
    write(&*block, 8192).unwrap();
    served.cut_power().unwrap();
    assert_eq!(write(&*block, 8192), Err(BlockError::PowerLost));
}

#[test]
fn requests_are_counted() {
    let served = served();
    let stats = Stats::new(Arc::clone(&served) as Arc<dyn Block>, served);
    for offset in [0, 4096] {
        write(&stats, offset).unwrap();
    }
    read(&stats, u64::MAX - 511).unwrap_err();
    let (writes, reads) = (stats.of(Kind::Write), stats.of(Kind::Read));
    assert_eq!((writes.requests, writes.bytes, writes.errors), (2, 8192, 0));
    assert_eq!((reads.requests, reads.bytes, reads.errors), (1, 0, 1));
    assert!(writes.latency_us.p50 > Some(100.0) && writes.latency_us.max >= writes.latency_us.p50, "{writes:?}");
    // No replies, no median.
    assert_eq!((reads.latency_us.p50, reads.latency_us.p99, reads.latency_us.max), (None, None, None));
}

/// Every request is done at the same instant.
struct Fixed;

impl Block for Fixed {
    fn exports(&self) -> Vec<Export> {
        Vec::new()
    }

    fn submit(&self, _: Area, _: Request<'_>) -> Result<Instant, BlockError> {
        Ok(Instant(1_000))
    }

    fn mapped(&self, _: Area, _: Range<u64>) -> Result<Vec<Mapped>, BlockError> {
        Ok(Vec::new())
    }

    fn due(&self, _: Instant) -> Option<Wall> {
        None
    }
}

#[test]
fn a_delay_is_added() {
    let delayed = parse("delay:read=5ms,write=1s", Arc::new(Fixed)).unwrap();
    assert_eq!(read(&*delayed, 0), Ok(Instant(5_001_000)));
    assert_eq!(write(&*delayed, 0), Ok(Instant(1_000_001_000)));
    assert_eq!(delayed.submit(Area::User, Request::Flush), Ok(Instant(1_000)));
    let all = parse("delay:all=7us", delayed).unwrap();
    assert_eq!(read(&*all, 0), Ok(Instant(5_008_000)));
}

#[test]
fn each_request_is_one_log_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let block = parse(&format!("log:file={}", path.display()), served()).unwrap();
    write(&*block, 4096).unwrap();
    read(&*block, 1).unwrap_err();
    block.submit(Area::Boot(1), Request::Flush).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    let misaligned = "user read 1 512 error: bytes 1..513 are not whole sectors of 512 bytes";
    assert_eq!(lines, ["user write 4096 4096 ok", misaligned, "boot1 flush 0 0 ok"]);
}

#[test]
fn bad_layers_are_refused() {
    for (text, expected) in [
        ("slow", "expected delay, fault, fake, drop, volatile or log"),
        ("drop:every=0", "expected at least 1"),
        ("drop:from=100", "expected whole sectors"),
        ("drop:to=99999999999999", "where the user area ends"),
        ("drop:from=4096,to=4096", "expected less than 4096"),
        ("drop:kind=read", "expected from, to or every"),
        ("volatile", "expected bytes=BYTES"),
        ("volatile:bytes=1", "expected 512 to"),
        ("delay:5ms", "expected KEY=VALUE"),
        ("delay:read=5", "expected a time such as"),
        ("delay:erase=5ms", "expected read, write"),
        ("fault:area=rpmb", "expected user, boot0"),
        ("fault:times=many", "expected a whole number"),
        ("fault:when=now", "expected kind, area"),
        ("log:file=/nowhere/at/all", "No such file"),
    ] {
        let error = parse(text, served()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(text), "{error}");
    }
}
