use std::path::PathBuf;
use std::sync::Arc;

use emmc_trace::{Event, Input, Notes, open};

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../testdata/traces", name].iter().collect();
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn input(name: &str, bytes: Vec<u8>) -> Input {
    Input { name: name.into(), storage: Arc::new(bytes) }
}

/// All events of a recording.
pub(crate) fn read(inputs: Vec<Input>) -> (Vec<Event>, Notes) {
    let mut recording = open(inputs).unwrap();
    let mut events = Vec::new();
    recording.events.run(|event| events.push(*event));
    assert_eq!(recording.events.late, 0);
    assert!(events.is_sorted_by_key(|event| event.at));
    (events, recording.events.notes())
}

pub(crate) fn events(names: &[&str]) -> Vec<Event> {
    let (events, notes) = read(names.iter().map(|name| input(name, bytes(name))).collect());
    assert_eq!((notes.damaged, notes.lost, notes.losses_uncounted), (0, 0, 0), "{:?}", notes.damage);
    events
}
