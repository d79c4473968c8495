internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import SystemPackage

/// Writes the checksum lists of ended units: into the state directory, into folders that received files, and as an
/// object where a destination accepts any file. Never into a watched folder.
///
/// Each step can be repeated, and the journal owes a list until all of them are done: a crash costs nothing.
struct ManifestWriter: Service {
    let shared: Shared
    let pool: BlockingPool
    let version: String

    private var journal: Journal { shared.journal }
    private var home: FilePath { shared.settings.settings.stateDirectory.appending("manifests") }

    private static let firstPause = Duration.seconds(30)
    private static let longestPause = Duration.seconds(3600)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await shared.signals[.batch].loop {
                do {
                    if let order = try await journal.nextManifest(at: .now) {
                        try await serve(order)
                        return .now
                    }
                    return try await journal.manifestDue().map { .now.advanced(by: max($0 - .now, .seconds(1))) }
                } catch {
                    // The journal fails now; admission reports that.
                    return .now.advanced(by: Self.firstPause)
                }
            }
        }
    }

    /// Writes a list, or postpones it: it delays no other.
    private func serve(_ order: ManifestOrder) async throws(JournalError) {
        do {
            try await write(order)
        } catch {
            // With a failing disk the order cannot be changed either.
            if error.isOfDisk { throw error }
            try await putOff(order, "\(error)")
        }
    }

    private func putOff(_ order: ManifestOrder, _ reason: String) async throws(JournalError) {
        let pause = Duration.backoff(Self.firstPause, upTo: Self.longestPause, after: order.attempts + 1)
        try await journal.manifestFailed(order, reason: reason, until: .now + pause)
    }

    private func write(_ order: ManifestOrder) async throws(JournalError) {
        guard let batch = try await journal.batch(order.batch), batch.endedAt != nil,
            batch.generation == order.generation
        else {
            // Files of it continue: the next end brings the next list.
            return try await journal.manifestDone(order)
        }
        guard let rule = order.rule else {
            return try await fail(order, batch, "the journal's record of the list cannot be read")
        }
        let jobs = try await journal.jobs(ofBatch: batch.id)
        let volume = jobs.lazy.compactMap(\.file.volume).first
        let labels = if let volume { try await journal.labels(ofVolume: volume) } else { CardLabels() }
        let manifest = UnitManifest(
            batch, rule, jobs, host: ProcessSetup.hostName, version: version, labels: labels)
        var troubles: [String] = []
        await note(&troubles) {
            try await writeHome(manifest)
            Failpoint.listAtHome.reached()
        }
        for destination in manifest.destinations.compactMap({ shared.destinations[$0] }) {
            await note(&troubles) { try await write(manifest, to: destination, isFirst: order.attempts == 0) }
        }
        if troubles.isEmpty {
            Failpoint.listsWritten.reached()
            try await journal.manifestDone(order)
            return Failpoint.listsDone.reached()
        }
        if Task.isCancelled { return }
        try await fail(order, batch, troubles.joined(separator: "; "))
    }

    private func fail(_ order: ManifestOrder, _ batch: Batch, _ reason: String) async throws(JournalError) {
        // Logged once, not at every try.
        if reason != order.reason { shared.log.emit(.manifestFailed(batch, reason: reason)) }
        try await putOff(order, reason)
    }

    private func note(_ troubles: inout [String], _ step: () async throws -> Void) async {
        do { try await step() } catch { troubles.append("\(error)") }
    }

    private func folder(_ manifest: UnitManifest) -> FilePath {
        home.appending("\(manifest.batch.id)-\(manifest.name())")
    }

    private func writeHome(_ manifest: UnitManifest) async throws {
        say(try await writeList(manifest, manifest.source, in: folder(manifest), stem: manifest.stem()), manifest, nil)
    }

    /// In the agent's own folder.
    private func writeList(
        _ manifest: UnitManifest, _ content: ManifestContent, in folder: FilePath, stem: String
    ) async throws -> ManifestFolder.Written? {
        let format = manifest.rule.format
        return try await pool.run { () throws(SystemError) in
            try DurableFile.makeDirectories(folder, mode: 0o750)
            return try ManifestFolder(folder).writeList(content, format, stem: stem)
        }
    }

    private func write(_ manifest: UnitManifest, to destination: Destination, isFirst: Bool) async throws {
        guard let delivered = manifest.delivered(to: destination.name) else { return }
        if let folder = destination.folder {
            let target = delivered.folder.isEmpty ? folder : folder.pushing(FilePath(key: delivered.folder))
            if let reason = refusal(of: target, delivered.folder) {
                if isFirst {
                    shared.log.emit(.manifestSkipped(manifest.batch, destination: destination.name, reason: reason))
                }
                return
            }
            try await write(manifest, delivered, into: target, destination.name)
        } else if destination.takesSidecars, destination.storage == nil {
            try await send(manifest, delivered, to: destination.name)
        }
    }

    /// Why no list may lie in a destination's folder.
    private func refusal(of target: FilePath, _ folder: String) -> String? {
        if ManifestContent.isReserved(FilePath(key: folder)) {
            return "a folder ascmhl holds the history of the folder above it, and nothing else"
        }
        let root = shared.settings.sendRoots.lazy.compactMap { $0.root(of: target) }.first
        return root.map { "it would be admitted as a new file of the watched folder \($0.display)" }
    }

    // MARK: - Folders

    private func write(
        _ manifest: UnitManifest, _ delivered: UnitManifest.DeliveredList, into target: FilePath, _ destination: String
    ) async throws {
        // An MHL history covers its whole folder: that must belong to this unit alone.
        var isAlone = manifest.rule.format == .ascmhl && !delivered.folder.isEmpty
        if isAlone {
            isAlone = try await !journal.hasOthers(
                besides: manifest.batch.id, below: delivered.folder, at: destination)
        }
        let hasHistory = isAlone
        let (content, format, mayAppend) = (delivered.content, manifest.rule.format, manifest.batch.generation > 1)
        let (name, stem) = (manifest.name(for: delivered.folder), manifest.stem(for: delivered.folder))
        let (written, reason) = try await pool.run {
            () throws(SystemError) -> (ManifestFolder.Written?, reason: String?) in
            // The dot follows a link. A missing folder is an unmounted disk, and is not created.
            _ = try DirectoryStream(target.appending("."))
            let place = ManifestFolder(target)
            guard hasHistory else { return (try place.writeList(content, format, stem: stem), nil) }
            switch try place.writeGeneration(content, name: name, mayAppend: mayAppend) {
            case .written(let written): return (written, nil)
            case .refused(let reason):
                var content = content
                content.notes.append("this list does not continue the history in its folder: \(reason)")
                return (try place.writeList(content, format, stem: stem), reason)
            }
        }
        if let written, written.isNew, let reason {
            shared.log.emit(.manifestStandalone(manifest.batch, destination: destination, reason: reason))
        }
        say(written, manifest, destination)
    }

    private func say(_ written: ManifestFolder.Written?, _ manifest: UnitManifest, _ destination: String?) {
        guard let written, written.isNew else { return }
        shared.log.emit(.manifestWritten(manifest.batch, file: written.path, destination: destination))
    }

    // MARK: - Objects

    /// Queues the list as a file of its own, as `inlet send` does, with all promises of a delivery.
    private func send(_ manifest: UnitManifest, _ delivered: UnitManifest.DeliveredList, to destination: String)
        async throws
    {
        let folder = folder(manifest).appending(UnitManifest.plain(destination))
        let stem = manifest.stem(for: delivered.folder)
        let written = try await writeList(manifest, delivered.content, in: folder, stem: stem)
        guard let path = written?.path, let identity = try FileLook.look(at: path).identity else { return }
        let last = try await journal.lastSent([(path, [destination])]).first ?? nil
        if let last, identity.isKnown(as: last.file.identity) { return }
        let prefix = delivered.folder.isEmpty ? "" : delivered.folder + "/"
        let plan = Plan(
            route: manifest.batch.route, category: "documents", key: "\(prefix)\(stem).mhl",
            mediaType: "application/xml", destinations: [destination],
            retry: manifest.jobs.first?.file.policy.retry ?? RetryPolicy())
        let admission = Admission(shared)
        var list = admission.planned(FoundFile(root: "", path: path, identity: identity), plan, .asked)
        list.newerThan = last?.file.id ?? 0
        if await admission.commit([list], .asked).contains(where: \.outcome.comesBack) {
            throw Refusal("cannot write the journal now")
        }
    }

}
