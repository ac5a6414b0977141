"""Decodes a timeline with Perfetto's own descriptors (Python package `perfetto`), and prints what is in it as JSON.

A field that they do not know, a slice on no track, times of a track that go back, and a slice without an end are errors.
"""
import collections
import json
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb


def unknown(message):
    """The number of fields that the descriptors do not know."""
    count = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            count += sum(unknown(each) for each in (value if field.is_repeated else [value]))
    return count


trace = pb.Trace()
data = sys.stdin.buffer.read()
assert trace.ParseFromString(data) == len(data)
tracks, open_, last, spans, requests = set(), collections.Counter(), {}, collections.Counter(), 0
for packet in trace.packet:
    assert unknown(packet) == 0, f'unknown fields: {packet}'
    assert packet.trusted_packet_sequence_id == 1
    if packet.HasField('track_descriptor'):
        found = packet.track_descriptor
        assert found.uuid not in tracks and found.name
        assert not found.HasField('parent_uuid') or found.parent_uuid in tracks
        tracks.add(found.uuid)
        continue
    event = packet.track_event
    assert packet.HasField('track_event') and packet.HasField('timestamp'), packet
    assert event.track_uuid in tracks, event
    assert packet.timestamp >= last.get(event.track_uuid, 0), f'time goes back: {packet}'
    last[event.track_uuid] = packet.timestamp
    if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
        if open_[event.track_uuid] == 0:
            assert event.debug_annotations, event
            requests += 1
        else:
            spans[event.name] += 1
        open_[event.track_uuid] += 1
    else:
        assert event.type == pb.TrackEvent.TYPE_SLICE_END, event
        open_[event.track_uuid] -= 1
        assert open_[event.track_uuid] >= 0, event
assert not any(open_.values())
print(json.dumps({'packets': len(trace.packet), 'requests': requests, 'spans': spans}))
