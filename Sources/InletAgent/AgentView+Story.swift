internal import InletCore
package import InletJournal
internal import InletPipelines

extension AgentView {
    /// What is known of a file beside its row.
    package struct Story: Sendable {
        package var job: Job
        /// The parts that destinations have proved, of deliveries that have not ended.
        package var parts: [Part]
        /// JSON; nil while it has not finished, and when it ended long ago.
        package var receipt: [UInt8]?

        package struct Part: Sendable, Equatable {
            package var destination: String
            /// From 1.
            package var number: Int
            package var size: Int64
            /// Without quotes.
            package var etag: String
        }
    }

    /// nil when the journal has no such file.
    package func story(_ id: Int64) async throws(JournalError) -> Story? {
        guard let job = try await job(id) else { return nil }
        let notes = try await journal.checkpoints(ofJob: id)
        let parts = job.deliveries.flatMap { delivery in
            UploadNotes.parts(notes[delivery.id] ?? [:], fileSize: job.file.identity.size)
                .map {
                    Story.Part(destination: delivery.destination, number: $0.number, size: $0.size, etag: $0.etag)
                }
        }
        return Story(job: job, parts: parts, receipt: try await journal.receipt(ofJob: id))
    }
}
