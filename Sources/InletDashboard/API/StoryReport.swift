internal import Foundation
internal import InletAgent
internal import InletCore

/// What is known of one file: more than its row says, as far as it is remembered.
struct StoryReport: Encodable, Sendable {
    /// A part that a destination has proved.
    struct Part: Codable, Sendable {
        var destination: String
        var part: Int
        var size: Int64
        /// Without quotes.
        var etag: String
    }

    var job: JobReport
    /// Oldest first.
    var events: [EventReport]
    /// What happened before is not remembered; left out when nothing is.
    var events_since: String?
    var parts: [Part]
    /// As it was written; left out while there is none.
    var receipt: JSONValue?

    /// - Parameter batch: the files that it belongs to.
    init(_ story: AgentControl.Story, _ job: JobReport, feed: ActivityFeed?) {
        self.job = job
        events = feed?.newest(EventRing.most, level: .debug, job: job.job) ?? []
        events_since = feed?.since?.rfc3339
        parts = story.parts.map { Part(destination: $0.destination, part: $0.number, size: $0.size, etag: $0.etag) }
        receipt = story.receipt.map { bytes in
            do {
                return try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
            } catch {
                // It is there, and what it says is no receipt.
                return .object(["unreadable": .text(String(decoding: bytes, as: UTF8.self))])
            }
        }
    }
}
