internal import FoundationEssentials
package import InletCore
internal import InletLinux
internal import InletTransfer
internal import Synchronization
internal import SystemPackage

/// The difference between the generations: how a job is cancelled, and whether it can be deleted.
extension VOPIAPI {
    /// The server's generation: asked once, then remembered on disk.
    /// - Throws: when the server does not answer, refuses us, or is of an unknown generation; nothing is deleted or
    ///   cancelled then.
    package func generation() async throws(DeliveryError) -> VOPIGeneration {
        if let known = await serverInfo.generation() { return known }
        return try await askGeneration()
    }

    /// Stops a job that has not begun; one that runs goes on, and may still complete.
    /// - Throws: `.conflict` when the job has ended, `.notFound` as `job`.
    package func cancel(_ id: String) async throws(DeliveryError) {
        let (post, delete) = (try request("POST", job: id, "/cancel"), try request("DELETE", job: id))
        var generation = try await generation()
        // A server may have been renewed since it was asked, and would now destroy what it is to cancel.
        if generation == .older, !serverInfo.isConfirmed { generation = try await askGeneration() }
        do throws(DeliveryError) {
            try await send(generation == .newer ? post : delete, .cancel, "cancelling job \(id)")
        } catch {
            // It may have been replaced by an older one: ask again before the next.
            if error.code == .badRequest { await serverInfo.forget() }
            throw error
        }
    }

    /// Deletes a job that has ended or not begun, and its files. A job that is not there counts as deleted.
    /// - Throws: `.conflict` while the job runs; `.badRequest` where the server can only cancel.
    package func delete(_ id: String) async throws(DeliveryError) {
        let request = try request("DELETE", job: id)
        try await requireDeleting()
        try await DeliveryError.ignoring(.notFound, in: await send(request, .delete, "deleting job \(id)"))
    }

    /// - Throws: `.badRequest` where a DELETE would not delete.
    func requireDeleting() async throws(DeliveryError) {
        guard try await generation() == .newer else {
            throw DeliveryError(
                .giveUp, .badRequest, "the server at \(settings.url.redacted) is an older one, which cannot delete")
        }
    }

    /// Cancels a job that cannot exist: a server that has the call misses the job, one that has not misses the route.
    private func askGeneration() async throws(DeliveryError) -> VOPIGeneration {
        let nobody = UUID().uuidString.lowercased()
        let response = try await service.answer(to: try request("POST", job: nobody, "/cancel"))
        let said = VOPIErrorBody(response)
        if response.status == 404, said.code == "NOT_FOUND" { return try await serverInfo.remember(.newer) }
        if response.status == 404, said.isUnknownRoute { return try await serverInfo.remember(.older) }
        // Any other 404 is nothing that the server itself says, and least of all that a job is gone.
        let verdict = response.status == 404 ? .done : VOPIVerdict(response, at: .cancel)
        throw refusal(verdict, response, "asking for the generation, with job \(nobody)")
    }
}

/// A server's generation as found, in `tokens/NAME.generation`.
final class VOPIServerInfoStore: Sendable {
    /// The known generation; `isForgotten`: the file no longer counts.
    private typealias Known = (generation: VOPIGeneration?, askedAt: ContinuousClock.Instant?, isForgotten: Bool)

    /// How long an answer that this process got itself is as good as a new one. A DELETE meant to cancel destroys the
    /// job where the server was upgraded in between.
    private static let trusted = Duration.seconds(60)

    private let folder: FilePath
    private let path: FilePath
    private let server: String
    private let pool: BlockingPool
    private let state = Mutex<Known>((nil, nil, false))

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
    func generation() async -> VOPIGeneration? {
        let (known, isForgotten) = state.withLock { ($0.generation, $0.isForgotten) }
        if known != nil || isForgotten { return known }
        let path = path
        // An unreadable file counts as missing: the server is asked again.
        let page = JSON.object(await pool.run { try? DurableFile.read(path, limit: 4096) })
        guard page?["server"]?.string == server,
            let generation = page?["generation"]?.string.flatMap({ VOPIGeneration(rawValue: $0) })
        else { return nil }
        state.withLock { $0.generation = generation }
        return generation
    }

    /// Durable when it returns.
    func remember(_ generation: VOPIGeneration) async throws(DeliveryError) -> VOPIGeneration {
        let (folder, path) = (folder, path)
        let page = JSONValue.object(["server": .string(server), "generation": .string(generation.rawValue)])
        do {
            try await pool.run { () throws(SystemError) in
                try VOPITokenStore.make(folder)
                try DurableFile.write(page.bytes, to: path, mode: 0o600, asFolderOwner: true)
            }
        } catch {
            throw DeliveryError(
                .outage(after: nil), .destinationUnwritable, "what the server is cannot be written down: \(error)")
        }
        state.withLock { $0 = (generation, .now, false) }
        return generation
    }

    /// Has the server asked again.
    func forget() async {
        let path = path
        // This process no longer reads a leftover, and replaces it with its next answer.
        await bestEffort(try await pool.run { () throws(SystemError) in try DurableFile.remove(path) })
        state.withLock { $0 = (nil, nil, true) }
    }
}

/// Which of its two ways a server cancels jobs in. They differ where it hurts: `DELETE /jobs/:id` cancels a job on the one
/// and destroys it, with its files, on the other.
package enum VOPIGeneration: String, Sendable, CaseIterable {
    /// Before 2026-01-27: DELETE cancels; nothing deletes.
    case older
    /// `POST …/cancel` cancels, DELETE deletes.
    case newer
}
