internal import FoundationEssentials
internal import InletCore

/// A part of an upload that its store has proved.
package struct StoredPart: Sendable, Equatable {
    /// From 1.
    package var number: Int
    package var size: Int64
    /// Without quotes.
    package var etag: String
}

/// What of a delivery's notes may be shown: numbers, sizes and tags, never ids, keys or URLs.
package enum UploadNotes {
    /// The parts that are there, in order; empty for notes of a pipeline that sends no parts.
    package static func parts(_ entries: [String: [UInt8]], fileSize: Int64) -> [StoredPart] {
        guard let record = UploadRecord(entries, fileSize: fileSize) else { return [] }
        return record.parts.sorted { $0.key < $1.key }.map { number, part in
            StoredPart(
                number: number, size: Int64(record.plan.range(number).count),
                etag: DisplayText.escape(part.etag.filter { $0 != "\"" }))
        }
    }
}
