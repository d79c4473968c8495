package import SystemPackage

/// A companion that is there with its file.
package typealias FoundCompanion = (companion: Companion, arrival: FoundFile)

/// What a new file is among those that it belongs together with.
package enum CompanionStatus: Sendable {
    case alone
    /// A file with the companions that are there; `isWhole` when none of those that its route names is missing. Otherwise it
    /// goes without them once it has been quiet for so long.
    case main([FoundCompanion], isWhole: Bool, quiet: Duration)
    /// A file whose marker says that it is complete.
    case marked([FoundCompanion])
    /// A file whose marker is not there yet, or has spoken for what was there before.
    case unmarked(marker: FilePath)
    /// What it belongs together with is just being made or disposed of: to be looked at again. A file must not go without its
    /// marker, or nobody would take that.
    case unsettled
    /// A companion whose file is there, but not in the journal yet.
    case waiting(main: FilePath, wait: Duration)
    /// A companion whose file waits for its marker: found again with it.
    case dormant
    /// A companion whose file is in the journal. `quiet` when that is not on the disk: another of its name may come.
    case late(Companion, main: Int64, quiet: Duration?)
    /// Metadata of a file that was rejected for what stood in its place before.
    case corrected(main: FilePath, job: Int64)
    /// A companion without a file.
    case orphan(quiet: Duration)

    /// Whether nothing is done with it until a marker is there.
    package var isAwaited: Bool {
        switch self {
        case .unmarked, .dormant: true
        default: false
        }
    }
}

/// What is known of the files around new ones, by their paths below the root. A path that is not named here is one where nothing
/// is, and of which the journal knows nothing.
package struct CompanionContext: Sendable {
    /// The newest row of a path.
    package struct Row: Sendable {
        var id: Int64
        var state: FileState
        var code: ErrorCode?
        var isFinished: Bool
        var identity: FileIdentity

        package init(id: Int64, state: FileState, code: ErrorCode?, isFinished: Bool, identity: FileIdentity) {
            (self.id, self.state, self.code) = (id, state, code)
            (self.isFinished, self.identity) = (isFinished, identity)
        }
    }

    package struct File: Sendable {
        /// As the rule of the root takes it; nil where it takes none.
        package var identity: FileIdentity?
        package var row: Row?
        /// Whether the journal knows the file that is there, or knew it before it was touched.
        package var isKnown = false
        /// Whether somebody may still write to it; nobody asks before `CompanionRule.probed` names it.
        package var isBusy = false

        package init(_ identity: FileIdentity? = nil) { self.identity = identity }
    }

    private var files: [FilePath: File] = [:]

    package init() {}

    package subscript(_ path: FilePath) -> File {
        get { files[path] ?? File() }
        set { files[path] = newValue }
    }
}

/// Decides what a new file is among those that it belongs together with: what is there, what the journal knows of it, and how
/// long each waits for the other. It looks at nothing by itself.
package struct CompanionRule: Sendable {
    let routes: RouteTable
    /// The root's.
    let settle: Duration
    /// With `existing: skip`: files not touched since then are not taken.
    let skipBefore: WallTime?

    /// Companions look again at least so seldom.
    private static let shortestWait = Duration.seconds(1)

    package init(routes: RouteTable, settle: Duration, skipBefore: WallTime?) {
        (self.routes, self.settle, self.skipBefore) = (routes, settle, skipBefore)
    }

    // MARK: - What must be known

    /// The paths of which something must be known to say what `arrival` is: nearly always none.
    ///
    /// - Returns: those to look at, and those to ask the journal about.
    package func around(_ arrival: FoundFile) -> (disk: [FilePath], journal: [FilePath]) {
        var (disk, journal): ([FilePath], [FilePath]) = ([], [])
        for belonging in routes.belongings(of: arrival.path) {
            disk.append(belonging.main)
            journal.append(belonging.main)
            for companion in belonging.route.companions(of: belonging.main) {
                guard [.metadata, .marker].contains(companion.kind) else { continue }
                disk.append(companion.path)
                if companion.kind == .marker { journal.append(companion.path) }
            }
        }
        guard let route = ownRoute(arrival) else { return (disk, journal) }
        for companion in route.companions(of: arrival.path) {
            disk.append(companion.path)
            if companion.kind == .marker { journal += [arrival.path, companion.path] }
        }
        return (disk, journal)
    }

    /// The files that are to be probed for writers before `status` can be believed: those that are complete if nobody writes to
    /// them.
    package func probed(for arrival: FoundFile, _ facts: CompanionContext, at now: WallTime) -> [FoundFile] {
        switch status(of: arrival, facts, at: now) {
        case .main(let found, _, _), .marked(let found): found.map(\.arrival)
        case .corrected: [arrival]
        default: []
        }
    }

    // MARK: - What it is

    /// - Parameter arrival: a file that is new to the journal.
    package func status(of arrival: FoundFile, _ facts: CompanionContext, at now: WallTime) -> CompanionStatus {
        let belongings = routes.belongings(of: arrival.path)
        if let status = status(belongings, of: arrival, facts, at: now) { return status }
        let orphaned = belongings.map { quiet(arrival.path, $0.route) }.max()
        guard let route = ownRoute(arrival) else { return orphaned.map { .orphan(quiet: $0) } ?? .alone }
        let status = status(ofMain: arrival, route, facts, at: now)
        if case .main(let found, true, let quiet) = status, let orphaned {
            return .main(found, isWhole: false, quiet: max(quiet, orphaned))
        }
        return status
    }

    /// The route that takes the file, if it has companions.
    private func ownRoute(_ arrival: FoundFile) -> Route? {
        routes.route(for: arrival.path, size: arrival.identity.size).flatMap { $0.hasCompanions ? $0 : nil }
    }

    /// How long a companion at `path` waits for its file: that only has to be there then.
    private func quiet(_ path: FilePath, _ route: Route) -> Duration {
        max(routes.settle(for: path) ?? settle, route.sidecars.wait)
    }

    // MARK: - As a companion

    /// nil when none of the files that it may belong to is, or was, there.
    private func status(
        _ belongings: [CompanionMatch], of arrival: FoundFile, _ facts: CompanionContext, at now: WallTime
    ) -> CompanionStatus? {
        var gone: CompanionStatus?
        for belonging in belongings {
            let main = facts[belonging.main]
            guard isTaken(main, belonging) else {
                if gone == nil, let row = main.row, ![.gone, .superseded].contains(row.state) {
                    gone = .late(belonging.companion, main: row.id, quiet: quiet(arrival.path, belonging.route))
                }
                continue
            }
            if let row = main.row, main.isKnown {
                guard row.code == .badSidecar, isFirstMetadata(belonging, facts) else {
                    return .late(belonging.companion, main: row.id, quiet: nil)
                }
                // The file looks at it once, and has been quiet for long.
                let isReady =
                    row.isFinished && isComplete(arrival, facts[arrival.path].isBusy, belonging.route, at: now)
                return isReady ? .corrected(main: belonging.main, job: row.id) : .unsettled
            }
            if belonging.route.wantsMarker, !isMarked(belonging.main, belonging.route, facts) { return .dormant }
            return .waiting(main: belonging.main, wait: max(belonging.route.sidecars.wait, Self.shortestWait))
        }
        return gone
    }

    /// Whether the file that a companion may belong to is there, and its route takes it.
    private func isTaken(_ main: CompanionContext.File, _ belonging: CompanionMatch) -> Bool {
        guard let identity = main.identity,
            routes.route(for: belonging.main, size: identity.size)?.name == belonging.route.name
        else { return false }
        return skipBefore.map { WallTime(nanoseconds: max(identity.modified, identity.changed)) >= $0 } ?? true
    }

    /// Whether it is the metadata that its file would read: of `.yaml` and `.yml` the first counts.
    private func isFirstMetadata(_ belonging: CompanionMatch, _ facts: CompanionContext) -> Bool {
        for candidate in belonging.route.companions(of: belonging.main) where candidate.kind == .metadata {
            if candidate.path == belonging.companion.path { return true }
            if facts[candidate.path].identity != nil { return false }
        }
        return false
    }

    private func isMarked(_ main: FilePath, _ route: Route, _ facts: CompanionContext) -> Bool {
        for candidate in route.companions(of: main) where candidate.kind == .marker {
            if facts[candidate.path].identity != nil { return !isSpent(candidate.path, of: main, facts) }
        }
        return false
    }

    /// Whether a marker has spoken for its file before. One that was kept, or not disposed of yet, says nothing of what the file
    /// is now, whatever became of what it was; unless the journal was told to forget that.
    private func isSpent(_ path: FilePath, of main: FilePath, _ facts: CompanionContext) -> Bool {
        let marker = facts[path]
        guard facts[main].row != nil, let row = marker.row else { return false }
        return [.gone, .superseded].contains(row.state) ? row.identity == marker.identity : marker.isKnown
    }

    // MARK: - As a main file

    private func status(
        ofMain arrival: FoundFile, _ route: Route, _ facts: CompanionContext, at now: WallTime
    ) -> CompanionStatus {
        var found: [FoundCompanion] = []
        var missing: Set<String> = Set(route.sidecars.extensions)
        if route.sidecars.metadata { missing.insert(Self.metadata) }
        var isWhole = true
        for candidate in route.companions(of: arrival.path) {
            // Of `.yaml` and `.yml` the first counts.
            if candidate.kind == .metadata, !missing.contains(Self.metadata) { continue }
            let file = facts[candidate.path]
            guard let identity = file.identity else {
                if candidate.kind == .marker { return .unmarked(marker: candidate.path) }
                continue
            }
            missing.remove(candidate.kind == .metadata ? Self.metadata : candidate.ending.lowercased())
            if candidate.kind == .marker, isSpent(candidate.path, of: arrival.path, facts) {
                return .unmarked(marker: candidate.path)
            }
            let companion = FoundFile(
                root: arrival.root, path: candidate.path, identity: identity, volume: arrival.volume)
            if isComplete(companion, file.isBusy, route, at: now) {
                found.append((companion: candidate, arrival: companion))
            } else if candidate.kind == .marker {
                return .unsettled
            } else {
                isWhole = false
            }
        }
        if route.wantsMarker { return .marked(found) }
        // What comes within `wait` after the file needs its own quiet time to be seen as complete.
        let quiet = (route.settle ?? settle) + route.sidecars.wait
        return .main(found, isWhole: isWhole && missing.isEmpty, quiet: quiet)
    }

    /// No ending has a slash.
    private static let metadata = "/"

    /// A companion is judged by its own times; one from the future, by its writers only. A marker says that all is there.
    private func isComplete(_ companion: FoundFile, _ isBusy: Bool, _ route: Route, at now: WallTime) -> Bool {
        let identity = companion.identity
        let age = now - WallTime(nanoseconds: max(identity.modified, identity.changed))
        guard route.wantsMarker || age < .zero || age >= route.settle ?? settle else { return false }
        return !isBusy
    }
}

/// A file that travels with another one, its main file.
package struct Companion: Sendable, Hashable {
    package enum Kind: String, Sendable, CaseIterable {
        /// `clip.mp4.yaml`: fields for the destination.
        case metadata
        /// `clip.mp4.xmp`
        case fullName = "full_name"
        /// `clip.xmp`
        case sameStem = "same_stem"
        /// `clip.mp4.done`: says that the file is complete, and is never delivered.
        case marker
        /// Made of its main file by a program (`derive:`); it lies elsewhere, and its ending is the rule's suffix.
        case derived
    }

    /// Below the root.
    package var path: FilePath
    package var kind: Kind
    /// What follows the last dot that is not the main file's, as it is written.
    package var ending: String

    package init(path: FilePath, kind: Kind, ending: String) {
        self.path = path
        self.kind = kind
        self.ending = ending
    }

    /// The companion's key beside that of the file at `main`: `a/clip.mp4` gives `a/clip.mp4.xmp`, and `a/clip.xmp` for
    /// a companion of the same stem. A key that does not end as its file keeps what follows its last dot.
    package func key(beside key: String, of main: FilePath) -> String {
        let tail = (kind == .derived ? "" : ".") + KeySanitizer.key(ending)
        var head = key[...]
        if kind == .sameStem {
            let (stem, last) = KeySanitizer.splitExtension(key)
            let own = "." + KeySanitizer.key(KeySanitizer.text(of: FileName(main).extension).text)
            if last.lowercased() == own.lowercased() { head = stem }
        }
        return KeySanitizer.cut(head, to: KeySanitizer.limit(for: key) - tail.utf8.count) + tail
    }
}

/// To which file a companion would belong by its name alone.
package struct CompanionMatch: Sendable {
    /// Below the root.
    package var main: FilePath
    package var companion: Companion
    /// The route that takes the main file, as far as its path tells.
    package var route: Route
}

extension Route {
    /// Whether files of this route may have companions.
    package var hasCompanions: Bool { !sidecars.isEmpty || wantsMarker }

    /// Whether each file waits for a marker of its own.
    package var wantsMarker: Bool { unit == .file && completion == .marker }

    /// Where companions of the file at `main` may be, the likelier first. `.yaml` and `.yml` are alternatives, and so are
    /// the places of one ending.
    package func companions(of main: FilePath) -> [Companion] {
        let name = FileName(main)
        let folder = main.removingLastComponent()
        func companion(_ kind: Companion.Kind, _ head: some Collection<UInt8>, _ ending: String) -> Companion {
            let path = folder.pushing(FilePath(bytes: Array(head) + Array(".\(ending)".utf8)))
            return Companion(path: path, kind: kind, ending: ending)
        }
        var result = wantsMarker ? [companion(.marker, name.bytes, Completion.fileEnding)] : []
        if sidecars.metadata { result += Self.metadataEndings.map { companion(.metadata, name.bytes, $0) } }
        let stem = Self.stem(name, mainExtensions)
        for ending in sidecars.extensions {
            let written = Self.cases(ending)
            result += written.map { companion(.fullName, name.bytes, $0) }
            guard isMain(name, beside: ending) else { continue }
            result += written.map { companion(.sameStem, stem, $0) }.filter { $0.path != main }
        }
        return result
    }

    /// The endings of main files.
    fileprivate var mainExtensions: [String] {
        match.extensions.isEmpty ? validate.extensions ?? [] : match.extensions.sorted()
    }

    /// Whether a file of this name is the main one of a companion with `ending`. An ending in both lists (a picture that
    /// is a raw file's preview, or stands for itself) is a companion only of what cannot be one itself.
    private func isMain(_ name: FileName, beside ending: String) -> Bool {
        !mainExtensions.contains(ending) || !sidecars.extensions.contains { name.hasExtension($0) }
    }

    private static let metadataEndings = ["yaml", "yml"]

    /// An ending as it may be written: in lower and in upper case.
    private static func cases(_ ending: String) -> [String] {
        let upper = ending.uppercased()
        return upper == ending ? [ending] : [ending, upper]
    }

    /// `name` without `.ending`; nil when it does not end so.
    private static func head(_ name: [UInt8], _ ending: String) -> ArraySlice<UInt8>? {
        let tail = Array(".\(ending)".utf8)
        guard name.count > tail.count, name.suffix(tail.count).elementsEqual(tail) else { return nil }
        return name.dropLast(tail.count)
    }

    /// `name` without the longest of `endings` that it has.
    private static func stem(_ name: FileName, _ endings: [String]) -> ArraySlice<UInt8> {
        guard let ending = endings.filter({ name.hasExtension($0) }).max(by: { $0.utf8.count < $1.utf8.count }) else {
            return name.stem
        }
        return name.bytes.dropLast(ending.utf8.count + 1)
    }

    /// The files to which `path` would belong: the full names first.
    fileprivate func belongings(of path: FilePath) -> [CompanionMatch] {
        let folder = path.removingLastComponent()
        let bytes = FileName(path).bytes
        var result: [CompanionMatch] = []
        func add(_ name: some Collection<UInt8>, _ kind: Companion.Kind, _ ending: String) {
            guard !name.isEmpty else { return }
            let companion = Companion(path: path, kind: kind, ending: ending)
            let main = folder.pushing(FilePath(bytes: Array(name)))
            if main != path { result.append(CompanionMatch(main: main, companion: companion, route: self)) }
        }
        if wantsMarker, let head = Self.head(bytes, Completion.fileEnding) {
            add(head, .marker, Completion.fileEnding)
        }
        for ending in sidecars.metadata ? Self.metadataEndings : [] {
            if let head = Self.head(bytes, ending) { add(head, .metadata, ending) }
        }
        for (ending, written) in sidecars.extensions.flatMap({ ending in
            Self.cases(ending).map { (ending, $0) }
        }) {
            guard let head = Self.head(bytes, written) else { continue }
            add(head, .fullName, written)
            for main in mainExtensions.flatMap(Self.cases) {
                let name = Array(head) + Array(".\(main)".utf8)
                if isMain(FileName(bytes: name), beside: ending) { add(name, .sameStem, written) }
            }
        }
        return result
    }
}

extension RouteTable {
    /// The files to which the one at `path` may belong, the likelier first; empty for nearly every file.
    package func belongings(of path: FilePath) -> [CompanionMatch] {
        guard hasCompanions else { return [] }
        return routes.filter(\.hasCompanions).flatMap { $0.belongings(of: path) }
            .filter { route(for: $0.main, size: nil)?.name == $0.route.name }
    }
}
