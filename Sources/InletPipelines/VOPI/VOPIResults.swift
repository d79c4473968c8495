package import InletCore
internal import InletLinux
internal import InletTransfer
package import SystemPackage

/// Fetches what a job made into a folder of its own: pictures, frames and `product.json`.
package struct VOPIResults: Sendable {
    package struct Summary: Sendable, Equatable {
        package var folder: FilePath
        /// Below it, in their order.
        package var files: [String]
        /// Results that the job lists but did not provide.
        package var missing: [String]
        /// How many files of the job are not there: those in `missing`, or more, where the server does not name them.
        package var absent: Int
        /// Why the first of them is not; nil where all are there.
        package var reason: String?
        package var bytes: Int64
    }

    /// Called when another file is there: how many are, of how many, and its name.
    package typealias Progress = @Sendable (_ done: Int, _ of: Int, _ name: String) -> Void

    let api: VOPIAPI
    let client: HTTPClient
    let pool: BlockingPool
    var isStopping: @Sendable () -> Bool = { false }

    private static let parallel = 4
    /// Of one job, which makes dozens; each has a place in the journal.
    private static let most = 20_000
    /// Rounds of asking for links that bring nothing new.
    private static let rounds = 3

    /// A job's own folder below `results`.
    package static func folder(of job: String, in settings: VOPISettings) -> FilePath {
        settings.results.appending(VOPIManifest.safeName(job, or: "job"))
    }

    /// Fetches a job's available results into `folder`, which is created; existing files stay. `product.json` lists
    /// missing results.
    ///
    /// - Parameters:
    ///   - known: the results of an earlier attempt; `noted` makes changes to it durable.
    ///   - isWhole: whether to write nothing beside the files before all are there.
    /// - Throws: `.conflict` when the job has no results yet; `.notFound`; with `isWhole`, a transient `.badAnswer`
    ///   while results are missing; as `Fetching.run`.
    package func fetch(
        job id: String, _ known: VOPIManifest = VOPIManifest(), into folder: FilePath,
        source: VOPIProduct.Source? = nil,
        isWhole: Bool = false, progress: @escaping Progress = { _, _, _ in },
        noted: (VOPIManifest) async throws(DeliveryError) -> Void = { _ in }
    ) async throws(DeliveryError) -> Summary {
        let job = try await api.job(id)
        var manifest = known
        let (links, missing) = try await fetch(job, &manifest, into: folder, noted: noted, progress: progress)
        // Skips the second request where the links already say that there is none.
        let metadata = links.saysMetadata ? links.productMetadata : try await api.metadata(id)
        let product = VOPIProduct(
            job: job, source: source, manifest: manifest, missing: missing.map(\.entry.path), metadata: metadata)
        guard product.absent > 0 else { return try await write(product, nil, folder) }
        let reason =
            missing.first.map { "\($0.entry.path): \($0.error.reason)" } ?? "the server gives no links to them"
        guard !isWhole else {
            throw DeliveryError(
                .retry(after: nil), .badAnswer,
                "\(product.absent) of \(product.count) results of job \(id) are not there yet: \(reason)")
        }
        return try await write(product, reason, folder)
    }

    private func fetch(
        _ job: VOPIJob, _ manifest: inout VOPIManifest, into folder: FilePath,
        noted: (VOPIManifest) async throws(DeliveryError) -> Void, progress: @escaping Progress
    ) async throws(DeliveryError) -> (VOPIDownloads, [Missing]) {
        var links: VOPIDownloads
        var missing: [Missing] = []
        var withoutProgress = 0
        repeat {
            if isStopping() { throw .stopping }
            let before = manifest
            links = try await self.links(of: job, into: &manifest)
            if manifest != before { try await noted(manifest) }
            let (wanted, bytes) = try await absent(manifest, in: folder)
            let all = manifest.entries.count
            var done = all - wanted.count
            missing = try await fetch(
                wanted, links.entries.reduce(into: [:]) { $0[$1.entry.identity] = $1.link },
                VOPIDiskQuota(folder, taken: bytes), into: folder
            ) { entry in
                done += 1
                progress(done, all, entry.path)
            }
            withoutProgress = missing.count < wanted.count ? 0 : withoutProgress + 1
            // A file missing behind one link stays missing behind another; a refused link may have expired.
        } while missing.contains(where: Self.isRefused) && withoutProgress < Self.rounds
        if let refused = missing.first(where: Self.isRefused) {
            throw DeliveryError(
                .retry(after: nil), .urlExpired,
                "the store refuses fresh links (403), such as \(refused.entry.object); check this machine's clock")
        }
        return (links, missing)
    }

    /// Fresh links and their files.
    private func links(
        of job: VOPIJob, into manifest: inout VOPIManifest
    ) async throws(DeliveryError) -> VOPIDownloads {
        let id = job.id
        let links: VOPIDownloads
        do throws(DeliveryError) {
            links = try await api.downloadURLs(id, life: .seconds(3600))
        } catch {
            guard error.code == .notFound else { throw error }
            // The job was just seen: it still exists, with the paid results.
            throw DeliveryError(.retry(after: error.asked), .badAnswer, error.reason, heard: error.heard)
        }
        if let reason = links.refused.first {
            throw DeliveryError(
                .giveUp, .forbiddenURL, "a link to results of job \(id) is refused: \(reason)",
                heard: StepFailure(200, .everybody))
        }
        manifest.add(links)
        guard manifest.entries.count <= Self.most else {
            throw DeliveryError(
                .giveUp, .answerTooLarge, "job \(id) speaks of more than \(Self.most) files; none more are fetched")
        }
        if let result = job.result { manifest.settle(result, links) }
        guard manifest.expected != nil || !manifest.entries.isEmpty else {
            throw DeliveryError(
                .retry(after: nil), .badAnswer, "the server names no results of job \(id), nor how many there are")
        }
        return links
    }

    /// Removes leftovers of broken downloads from the folder; whole files stay.
    func discard(_ manifest: VOPIManifest, in folder: FilePath) async {
        let downloader = Downloader(client: client, pool: pool)
        for entry in manifest.entries {
            let path = FilePath(entry.path)
            // Best effort: a missing folder has no leftovers, and leftovers do no harm.
            await bestEffort(
                try await downloader.discard(
                    Download(
                        target: folder.pushing(path), in: try Self.open(path.removingLastComponent(), in: folder))))
        }
    }

    // MARK: - Files

    private typealias Missing = (entry: VOPIManifest.Entry, error: DeliveryError)

    /// Whether a link was refused and another may work.
    private static func isRefused(_ missing: Missing) -> Bool { missing.error.code == .urlExpired }

    /// A failing file does not hold up the others.
    private static let lone: Set<ErrorCode> = [.notFound, .urlExpired, .badAnswer, .corrupted]

    /// Fetches several at once. - Returns: those that have no link, or that their link does not give.
    /// - Parameter links: keyed by the identities of their entries.
    private func fetch(
        _ wanted: [VOPIManifest.Entry], _ links: [[String]: HTTPURL], _ quota: VOPIDiskQuota, into folder: FilePath,
        fetched: (VOPIManifest.Entry) -> Void
    ) async throws(DeliveryError) -> [Missing] {
        var rest = wanted[...]
        var missing: [Missing] = []
        var failure: DeliveryError?
        await withTaskGroup(of: (VOPIManifest.Entry, Result<Void, DeliveryError>).self) { group in
            func begin() {
                guard let entry = rest.popFirst() else { return }
                group.addTask { () async -> (VOPIManifest.Entry, Result<Void, DeliveryError>) in
                    (entry, await Result(of: try await self.fetch(entry, links, quota, into: folder)))
                }
            }
            for _ in 0..<Self.parallel { begin() }
            for await (entry, result) in group {
                switch result {
                case .success: fetched(entry)
                case .failure(let error) where Self.lone.contains(error.code):
                    missing.append((entry, error))
                case .failure(let error):
                    failure = failure ?? error
                    group.cancelAll()
                }
                if failure == nil { begin() }
            }
        }
        if let failure { throw failure }
        return missing
    }

    private func fetch(
        _ entry: VOPIManifest.Entry, _ links: [[String]: HTTPURL], _ quota: VOPIDiskQuota, into folder: FilePath
    ) async throws(DeliveryError) {
        guard let url = links[entry.identity] else {
            throw DeliveryError(.giveUp, .notFound, "\(entry.object) has no link any more")
        }
        let path = FilePath(entry.path)
        let place = try await pool.run { () throws(DeliveryError) in
            try Self.make(path.removingLastComponent(), in: folder)
        }
        var download = Download(target: folder.pushing(path), in: place)
        download.tagIsMD5 = true
        let ending = url.pictureEnding
        download.objection = { MediaFormat.objection(to: $0, ending: ending) }
        do throws(DeliveryError) {
            try await quota.hold(on: pool) { limit throws(DeliveryError) in
                download.limit = limit.bytes
                let fetching = Fetching(client: client, pool: pool, isStopping: isStopping)
                return try await fetching.run(download) { next throws(DeliveryError) in
                    guard next.refusal != 403 else {
                        throw DeliveryError(
                            .giveUp, .urlExpired, "\(entry.object): its link has to be asked for anew")
                    }
                    return HTTPRequest("GET", url, headers: next.headers)
                }.size
            }
        } catch {
            // Somebody else who fetches the same job was faster. An unreadable file counts as missing.
            guard error.code == .destinationExists, await pool.run({ (try? Self.size(of: entry, place)) != nil })
            else { throw error }
            // Our leftover does no harm.
            await bestEffort(try await Downloader(client: client, pool: pool).discard(download))
        }
    }

    /// Written last: its presence means that every available result has been fetched.
    private func write(
        _ product: VOPIProduct, _ reason: String?, _ folder: FilePath
    ) async throws(DeliveryError) -> Summary {
        try await pool.run { () throws(DeliveryError) in
            do throws(SystemError) {
                let place = try Self.open("", in: folder)
                let (json, files, bytes) = try product.described(in: place)
                try place.write(json, to: VOPIProduct.fileName, mode: 0o644)
                return Summary(
                    folder: folder, files: files + [VOPIProduct.name], missing: product.missing,
                    absent: product.absent, reason: reason, bytes: bytes + Int64(json.count))
            } catch {
                throw DeliveryError(writing: error)
            }
        }
    }

    // MARK: - Existing files of the job

    /// The entries without a file, and the bytes of those with one; creates their folders. Only whole files get their
    /// final names.
    private func absent(
        _ manifest: VOPIManifest, in folder: FilePath
    ) async throws(DeliveryError) -> (entries: [VOPIManifest.Entry], bytes: Int64) {
        try await pool.run { () throws(DeliveryError) in
            var (absent, bytes): ([VOPIManifest.Entry], Int64) = ([], 0)
            var last: (path: FilePath, folder: Folder)?
            _ = try Self.make("", in: folder)
            for entry in manifest.entries {
                let path = FilePath(entry.path).removingLastComponent()
                if last?.path != path { last = (path, try Self.make(path, in: folder)) }
                guard let place = last?.folder else { continue }
                if let size = try Self.size(of: entry, place) {
                    bytes += size
                } else {
                    absent.append(entry)
                }
            }
            return (absent, bytes)
        }
    }

    /// Of a whole file with this name; nil for none.
    private static func size(of entry: VOPIManifest.Entry, _ folder: Folder) throws(DeliveryError) -> Int64? {
        guard let name = FilePath(entry.path).lastComponent else { return nil }
        return try DeliveryError.onWriting(folder.look(name)).identity?.size
    }

    /// Creates and opens a folder at or below the job's own. None may be a symlink: anyone who can write there could
    /// otherwise redirect the agent's files with its privileges.
    private static func make(_ path: FilePath, in folder: FilePath) throws(DeliveryError) -> Folder {
        do throws(SystemError) {
            let results = try Folder.making(folder.removingLastComponent(), mode: 0o777)
            return try results.folder(below(folder, path), making: 0o777)
        } catch {
            guard error.isLinked else { throw DeliveryError(writing: error) }
            throw DeliveryError(
                .giveUp, .destinationExists,
                "\(folder.pushing(path).display) is a symlink, or behind one; results are not written through it")
        }
    }

    /// The same without creating it.
    static func open(_ path: FilePath, in folder: FilePath) throws(SystemError) -> Folder {
        try Folder(folder.removingLastComponent()).folder(below(folder, path))
    }

    private static func below(_ folder: FilePath, _ path: FilePath) -> FilePath {
        FilePath(root: nil, folder.lastComponent.map { [$0] } ?? []).pushing(path)
    }
}
