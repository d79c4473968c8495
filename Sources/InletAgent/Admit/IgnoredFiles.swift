internal import InletCore
internal import InletJournal
internal import InletLinux
package import SystemPackage

/// Files of a watched folder that Inlet leaves alone, found by a look at the folder that ends after a while. By name,
/// size and times alone: no file is read.
package struct IgnoredFiles: Sendable {
    package struct File: Sendable {
        /// Whole; a folder stands for everything in it.
        package var path: FilePath
        package var isFolder = false
        package var reason: String
    }

    package private(set) var files: [File] = []
    /// Whether there may be more.
    package private(set) var isMore = false
    /// How many names were looked at.
    package private(set) var looked = 0

    /// The most of one answer.
    package static let most = 1000
    /// A big archive is not walked to its end for one look.
    private static let mostLooked = 50_000
    fileprivate static let patience = Duration.seconds(5)

    /// Files that are ignored unless the journal knows them.
    private var candidates: [(arrival: FoundFile, reason: String)] = []
    private let watch: WatchSettings
    private let routes: RouteTable
    private let limit: Int
    private let skipBefore: WallTime?

    /// - Parameter skipBefore: with `existing: skip`, when the folder was first watched.
    init(_ watch: WatchSettings, _ routes: RouteTable, limit: Int, skipBefore: WallTime?) {
        (self.watch, self.routes, self.limit) = (watch, routes, min(limit, Self.most))
        self.skipBefore = skipBefore
    }

    /// Lists the folder. Blocks.
    mutating func look() {
        let end = ContinuousClock.now.advanced(by: Self.patience)
        let ignore = IgnoreList(user: watch.ignore)
        var listing = Listing(root: watch.path, isRecursive: watch.recursive)
        listing.mostNamed = limit
        listing.add("")
        while true {
            switch listing.next(ignore) {
            case .file(let path): consider(path)
            case .irregular(let path): add(path, "it is no regular file: a symlink, FIFO, socket or device")
            case .trouble(let path, let error), .passedOver(let path, let error):
                add(path, isFolder: true, "it cannot be listed: \(error)")
            case .entered, .gone, .reading: break
            case .finished: return takeNamed(of: listing, ignore)
            }
            guard files.count + candidates.count + listing.named.count < limit, looked < Self.mostLooked, .now < end
            else {
                isMore = true
                return takeNamed(of: listing, ignore)
            }
        }
    }

    private mutating func takeNamed(of listing: borrowing Listing, _ ignore: IgnoreList) {
        looked += listing.named.count
        if listing.ignored.files + listing.ignored.folders > listing.named.count { isMore = true }
        for (path, isFolder) in listing.named {
            add(path, isFolder: isFolder, ignore.reason(path, isDirectory: isFolder) ?? "its name is ignored")
        }
    }

    private mutating func add(_ path: FilePath, isFolder: Bool = false, _ reason: String) {
        files.append(File(path: watch.path.pushing(path), isFolder: isFolder, reason: reason))
    }

    private mutating func consider(_ path: FilePath) {
        looked += 1
        // A file that vanished meanwhile, or cannot be looked at, is not listed.
        guard let found = try? FileLook.look(at: RootedPath(watch.path, path)), let identity = found.identity else {
            return
        }
        let arrival = FoundFile(root: watch.path, path: path, identity: identity)
        if let refusal = found.refusal(by: watch.sources) {
            candidates.append((arrival, refusal.reason(files: 1)))
        } else if let reason = reason(arrival) {
            candidates.append((arrival, reason))
        }
    }

    /// Why Inlet leaves the file alone; nil where it takes it, or it goes with another file.
    private func reason(_ arrival: FoundFile) -> String? {
        // A rule that cannot tell by the name alone ignores nothing.
        if (try? routes.belonging(of: arrival)) != nil { return nil }
        let plan = RouteDryRun(
            RouteSource(arrival.place.whole, in: [watch]), identity: arrival.identity, table: routes,
            destination: { _ in nil }, at: .now)
        if plan.planned == nil, plan.rejection == nil {
            let passed = plan.traces.compactMap { trace in trace.mismatch.map { "\(trace.route): \($0)" } }
            return "no route takes it" + (passed.isEmpty ? "" : " (\(passed.joined(separator: "; ")))")
        }
        let changed = WallTime(nanoseconds: max(arrival.identity.modified, arrival.identity.changed))
        guard let skipBefore, changed < skipBefore else { return nil }
        return "it existed before this folder was watched (existing: skip)"
    }

    /// Leaves out what the journal knows: routes may have taken it in former times.
    mutating func settle(_ known: [KnownFile]) {
        for ((arrival, reason), fact) in zip(candidates, known) {
            if case .new = fact { add(arrival.path, reason) }
        }
        candidates = []
        files.sort { $0.path.bytes.lexicographicallyPrecedes($1.path.bytes) }
    }

    var arrivals: [FoundFile] { candidates.map(\.arrival) }
}

extension AgentControl {
    /// The ignored files of a watched folder; nil for another folder, for one that is not there or does not answer, and
    /// while no agent runs.
    package func ignored(in root: FilePath, limit: Int) async throws -> IgnoredFiles? {
        guard let live, let found = live.shared.settings.watch.first(where: { $0.covers(root) }) else { return nil }
        // A pattern's folder is one of those that are there now.
        guard live.isPresent(root) else { return nil }
        var watch = found
        watch.path = root
        let skipBefore = watch.existing == .skip ? try await journal.firstSeen(root) ?? .now : nil
        let begun = IgnoredFiles(watch, live.shared.settings.routes, limit: limit, skipBefore: skipBefore)
        let seen = await live.viewer.look(within: IgnoredFiles.patience * 2) {
            var listed = begun
            listed.look()
            // Unknown only where the folder is gone: then nothing was found in it.
            return (files: listed, tolerance: (try? FileSystemKind.of(root).modifiedTolerance) ?? 0)
        }
        guard let seen else { return nil }
        var files = seen.files
        files.settle(try await journal.recall(files.arrivals, tolerance: seen.tolerance))
        return files
    }
}
