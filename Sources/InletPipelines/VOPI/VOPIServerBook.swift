internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import Synchronization
internal import SystemPackage

/// What a server was found to be, in `tokens/NAME.generation`. An answer for another address does not count.
final class VOPIServerBook: Sendable {
    private struct Page: Codable {
        var server: String
        var generation: VOPIGeneration
    }

    private struct State {
        var generation: VOPIGeneration?
        var askedAt: ContinuousClock.Instant?
        /// The file does not count any more.
        var isForgotten = false
    }

    /// For how long an answer that this process got itself is as good as a new one: a DELETE that was to cancel destroys
    /// the job where the server was renewed in between.
    private static let trusted = Duration.seconds(60)

    private let folder: FilePath
    private let path: FilePath
    private let server: String
    private let pool: BlockingPool
    private let state = Mutex(State())

    init(folder: FilePath, name: String, server: HTTPURL, pool: BlockingPool) {
        self.folder = folder
        path = folder.appending("\(name).generation")
        self.server = server.redacted
        self.pool = pool
    }

    /// Whether this process asked the server itself, within the last minute.
    var isConfirmed: Bool {
        state.withLock { $0.askedAt.map { ContinuousClock.now - $0 < Self.trusted } ?? false }
    }

    /// nil when the server was never asked.
    func generation() async throws(DeliveryError) -> VOPIGeneration? {
        let (known, isForgotten) = state.withLock { ($0.generation, $0.isForgotten) }
        if known != nil || isForgotten { return known }
        let path = path
        // What cannot be read was not asked: it is asked again.
        let bytes = await pool.run { try? DurableFile.read(path, limit: 4096) }
        // As above.
        guard let page = bytes.flatMap({ try? JSONDecoder().decode(Page.self, from: Data($0)) }), page.server == server
        else { return nil }
        state.withLock { $0.generation = page.generation }
        return page.generation
    }

    /// Durable when it returns.
    func remember(_ generation: VOPIGeneration) async throws(DeliveryError) -> VOPIGeneration {
        let (folder, path) = (folder, path)
        let page = Page(server: server, generation: generation)
        do {
            let bytes = Array(try JSONEncoder().encode(page))
            try await pool.run {
                try VOPITokenStore.make(folder)
                try DurableFile.write(bytes, to: path, mode: 0o600, asFolderOwner: true)
            }
        } catch {
            throw DeliveryError(
                .outage(after: nil), .destinationUnwritable, "what the server is cannot be written down: \(error)")
        }
        state.withLock { $0 = State(generation: generation, askedAt: .now) }
        return generation
    }

    /// Has the server asked again.
    func forget() async {
        let path = path
        // What stays is not read by this process any more, and replaced by its next answer.
        await pool.run { try? DurableFile.remove(path) }
        state.withLock { $0 = State(isForgotten: true) }
    }
}

/// Which of its two ways a server cancels jobs in. They differ where it hurts: `DELETE /jobs/:id` cancels a job on the one
/// and destroys it, with its files, on the other.
package enum VOPIGeneration: String, Sendable, Codable, CaseIterable {
    /// Before 2026-01-27: DELETE cancels; nothing deletes.
    case older
    /// `POST …/cancel` cancels, DELETE deletes.
    case newer
}
