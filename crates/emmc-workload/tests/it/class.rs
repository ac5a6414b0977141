//! The suite `class` on cards whose class is known or follows from the profile.

use crate::cards::{card, figure, told};
use emmc_workload::{Options, Outcome};

fn passes(outcome: &Outcome, class: &str) -> bool {
    figure(outcome, class) == 1.0
}

#[test]
fn an_a1_card_passes_a1_and_not_a2() {
    let mut target = card("sandisk-extreme-a1-32g", |_| ());
    let outcome = told("class", &mut target, &Options::default());
    for figure in &outcome.figures {
        println!("{}: {:?} {} {}", figure.name, figure.value, figure.unit, figure.note);
    }
    println!("{:?}", outcome.remarks);
    assert!(passes(&outcome, "A1") && !passes(&outcome, "A2"));
    assert!(passes(&outcome, "C10") && passes(&outcome, "U1"));
    assert!(outcome.remarks.iter().any(|text| text.contains("From memory")));
}

#[test]
fn a_class_4_card_passes_class_4_only() {
    let mut target = card("intenso-class4-4g", |_| ());
    let outcome = told("class", &mut target, &Options::default());
    for figure in &outcome.figures {
        println!("{}: {:?} {} {}", figure.name, figure.value, figure.unit, figure.note);
    }
    assert!(!passes(&outcome, "U3") && !passes(&outcome, "A1"));
    let curve = outcome.grids.iter().find(|grid| grid.name == "performance curve").unwrap();
    let measured: Vec<f64> = curve.lines.iter().filter_map(|line| line.values[0]).collect();
    assert_eq!(measured.len(), 8);
    // What stays in an AU has to be moved on such a card: the fuller, the slower.
    assert!(measured[7] < measured[0] / 2.0, "{measured:.2?}");
}

#[test]
fn without_a_queue_more_requests_are_no_faster() {
    let options = Options::default();
    let outcome =
        told("class", &mut card("sandisk-extreme-a1-32g", |profile| profile.controller.queue_depth = 0), &options);
    assert!(outcome.remarks.iter().any(|text| text.contains("no command queue")), "{:?}", outcome.remarks);
}
