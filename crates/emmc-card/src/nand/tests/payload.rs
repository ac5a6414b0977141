//! Slots and their owners.

use super::*;

#[test]
fn a_slot_is_reused_after_its_release_is_recorded() {
    let mut slots = Slots::outside(4, Box::<InMemory>::default());
    let (one, two) = (slots.put(&[1; 4]), slots.put(&[2; 4]));
    assert_eq!((slots.get(one), slots.get(Content::NONE)), (Some(&[1; 4][..]), None));
    assert_eq!((slots.put(&[0; 4]), slots.get(Content::ZEROS)), (Content::ZEROS, Some(&[0; 4][..])));
    slots.release(&[two]);
    assert_eq!(slots.put(&[2; 4]), two, "it was never recorded");
    slots.recorded();
    slots.release(&[one, Content::ZEROS]);
    assert_ne!(slots.put(&[3; 4]), one);
    slots.recorded();
    assert_eq!(slots.put(&[2; 4]), one);
    assert_eq!(slots.clone().get(one), Some(&[2; 4][..]));
}

#[test]
fn a_lost_unit_stays_lost_when_it_is_moved() {
    let mut slots = Slots::outside(4, Box::<InMemory>::default());
    let (good, bad) = (slots.put(&[1; 4]), slots.put(&[2; 4]));
    assert!(slots.set_used([good, bad].into_iter(), 9) && slots.found_lost().is_none());
    slots.payload.put(bad.slot().unwrap(), &[3; 4]);
    let read = slots.get(bad).unwrap().to_vec();
    assert!(read != [3; 4] && slots.found_lost() == Some(&read[..]));
    let moved = slots.put(&read);
    assert_eq!((moved, moved.slot(), slots.get(moved)), (Content::LOST, None, Some(&read[..])));
    assert_eq!(slots.get(good), Some(&[1; 4][..]));
    slots.release(&[moved, bad]);
}

#[test]
fn unused_slots_are_free() {
    let mut slots = Slots::in_memory(1);
    let used = [Content(2 + 3), Content::ZEROS, Content(2 + 1), Content::NONE];
    assert!(slots.set_used(used.into_iter(), 4));
    assert!(!Slots::in_memory(1).set_used(used.into_iter(), 3));
    assert!(!Slots::in_memory(1).set_used([Content(7); 2].into_iter(), 99));
    let taken: Vec<u32> = (0..3).map(|_| slots.put(&[9]).0 - 2).collect();
    assert_eq!(taken, [0, 2, 4]);
    slots.release(&[Content(2 + 4), Content(2 + 1), Content(2 + 3)]);
    slots.tidy();
    assert_eq!((slots.end(), slots.put(&[9]).0 - 2), (3, 1));
}
/// Counts what is given back.
#[derive(Debug)]
struct Counting(std::sync::mpsc::Sender<Range<u32>>);

impl Payload for Counting {
    fn put(&mut self, _: u32, _: &[u8]) {}

    fn get(&self, _: u32) -> &[u8] {
        &[]
    }

    fn release(&mut self, _: u32) {}

    fn give_back(&mut self, slots: Range<u32>) {
        self.0.send(slots).unwrap();
    }
}

#[test]
fn a_step_of_tidying_gives_back_one_run_at_most() {
    let (sender, given) = std::sync::mpsc::channel();
    let mut slots = Slots::outside(4096, Box::new(Counting(sender)));
    let all: Vec<Content> = (0..10 * GROUP).map(|_| slots.put(&[9; 4096])).collect();
    // Every second unit of the first groups, then all but a few.
    let is_free = |at: u32| if at < 4 * GROUP { at % 2 == 0 } else { at % 1500 != 0 };
    let free: Vec<Content> = (0..).zip(&all).filter(|(at, _)| is_free(*at)).map(|(_, content)| *content).collect();
    slots.release(&free);
    let (mut steps, mut given_back) = (0, 0);
    loop {
        let is_done = slots.tidy_some();
        let runs: Vec<Range<u32>> = given.try_iter().collect();
        assert!(runs.len() <= 1 && runs.iter().all(|run| run.len() <= GROUP as usize), "{runs:?}");
        given_back += runs.iter().map(ExactSizeIterator::len).sum::<usize>();
        steps += 1;
        if is_done {
            break;
        }
    }
    let scattered = 2 * GROUP as usize;
    assert_eq!((given_back + scattered, steps > 10), (free.len(), true));
}
