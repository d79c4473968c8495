internal import InletCore
package import InletJournal
package import InletPipelines

extension AgentView {
    /// What is known of a file beside its row.
    package struct Story: Sendable {
        package var job: Job
        /// The parts that destinations have proved, of deliveries that have not ended.
        package var parts: [(destination: String, part: StoredPart)]
        /// JSON; nil while it has not finished, and when it ended long ago.
        package var receipt: [UInt8]?
    }

    /// nil when the journal has no such file.
    package func story(_ id: Int64) async throws(JournalError) -> Story? {
        guard let job = try await job(id) else { return nil }
        let notes = try await journal.checkpoints(ofJob: id)
        let parts = job.deliveries.flatMap { delivery in
            UploadNotes.parts(notes[delivery.id] ?? [:], fileSize: job.file.identity.size)
                .map { (delivery.destination, $0) }
        }
        return Story(job: job, parts: parts, receipt: try await journal.receipt(ofJob: id))
    }
}
