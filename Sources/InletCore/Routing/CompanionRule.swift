package import SystemPackage

/// A companion that exists, with its file.
package typealias FoundCompanion = (companion: Companion, arrival: FoundFile)

/// The role of a new file among the files that belong together.
package enum CompanionStatus: Sendable {
    case alone
    /// A main file with its existing companions; `isWhole` if its route misses none. Otherwise it goes without the
    /// missing ones after it was quiet for this long.
    case main([FoundCompanion], isWhole: Bool, quiet: Duration)
    /// A file whose marker shows that it is complete.
    case marked([FoundCompanion])
    /// A file without its marker yet, or whose marker was for an earlier file.
    case unmarked(marker: FilePath)
    /// A related file is being written or disposed of: look again. A file must not go without its marker, because
    /// nothing would take the marker then.
    case unsettled
    /// A companion whose file exists, but is not in the journal yet.
    case waiting(main: FilePath, wait: Duration)
    /// A companion whose file waits for its marker, and finds the companion then.
    case dormant
    /// A companion whose file is in the journal. `quiet` is set if that file is not on the disk: another of its name
    /// may come.
    case late(Companion, main: Int64, quiet: Duration?)
    /// Metadata of a file that was rejected because of its earlier metadata.
    case corrected(main: FilePath, job: Int64)
    /// A companion without a file.
    case orphan(quiet: Duration)

    /// Whether nothing happens to it until a marker exists.
    package var isAwaited: Bool {
        switch self {
        case .unmarked, .dormant: true
        default: false
        }
    }
}

/// The known facts about files around new ones, by path below the root. For other paths, no file exists, and the
/// journal has no row.
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
        /// The identity, if the root's rule takes the file; nil otherwise.
        package var identity: FileIdentity?
        package var row: Row?
        /// Whether the journal knows the existing file, or knew it before it was touched.
        package var isKnown = false
        /// Whether a program may still write to it; checked only for files that `CompanionRule.probed` names.
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

/// Decides the role of a new file among the files that belong together: which ones exist, what the journal knows of
/// them, and how long they wait for each other. Does no I/O.
package struct CompanionRule: Sendable {
    let routes: RouteTable
    /// The settle time of the root.
    let settle: Duration
    /// With `existing: skip`: ignores files that were not touched since then.
    let skipBefore: WallTime?

    /// The shortest pause before companions look again.
    private static let shortestWait = Duration.seconds(1)

    package init(routes: RouteTable, settle: Duration, skipBefore: WallTime?) {
        (self.routes, self.settle, self.skipBefore) = (routes, settle, skipBefore)
    }

    // MARK: - Required facts

    /// The paths whose facts decide the role of `arrival`: nearly always none.
    ///
    /// - Returns: paths to look at, and paths to look up in the journal.
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

    /// The files to probe for writers before `status` is valid: files that are complete unless a program writes to
    /// them.
    package func probed(for arrival: FoundFile, _ facts: CompanionContext, at now: WallTime) -> [FoundFile] {
        switch status(of: arrival, facts, at: now) {
        case .main(let found, _, _), .marked(let found): found.map(\.arrival)
        case .corrected: [arrival]
        default: []
        }
    }

    // MARK: - Roles

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

    /// The route that takes the file, if the route has companions.
    private func ownRoute(_ arrival: FoundFile) -> Route? {
        routes.route(for: arrival.path, size: arrival.identity.size).flatMap { $0.hasCompanions ? $0 : nil }
    }

    /// How long a companion at `path` waits for its file to appear.
    private func quiet(_ path: FilePath, _ route: Route) -> Duration {
        max(routes.settle(for: path) ?? settle, route.sidecars.wait)
    }

    // MARK: - As a companion

    /// nil if none of its possible main files exists or existed.
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
                // The file reads it only once, after a long quiet time.
                let isReady =
                    row.isFinished && isComplete(arrival, facts[arrival.path].isBusy, belonging.route, at: now)
                return isReady ? .corrected(main: belonging.main, job: row.id) : .unsettled
            }
            if belonging.route.wantsMarker, !isMarked(belonging.main, belonging.route, facts) { return .dormant }
            return .waiting(main: belonging.main, wait: max(belonging.route.sidecars.wait, Self.shortestWait))
        }
        return gone
    }

    /// Whether the possible main file exists, and its route takes it.
    private func isTaken(_ main: CompanionContext.File, _ belonging: CompanionMatch) -> Bool {
        guard let identity = main.identity,
            routes.route(for: belonging.main, size: identity.size)?.name == belonging.route.name
        else { return false }
        return skipBefore.map { WallTime(nanoseconds: max(identity.modified, identity.changed)) >= $0 } ?? true
    }

    /// Whether this is the metadata that its file would read: the first of `.yaml` and `.yml`.
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

    /// Whether a marker already completed its file. A marker that was kept, or not disposed of yet, says nothing about
    /// a newer file, unless the journal was asked to forget the earlier one.
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
            // Of `.yaml` and `.yml`, the first counts.
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
        // A companion that comes within `wait` after the file needs its own quiet time to count as complete.
        let quiet = (route.settle ?? settle) + route.sidecars.wait
        return .main(found, isWhole: isWhole && missing.isEmpty, quiet: quiet)
    }

    /// No ending contains a slash.
    private static let metadata = "/"

    /// Judges a companion by its own times, or only by its writers if they are in the future. A marker shows that all
    /// is there.
    private func isComplete(_ companion: FoundFile, _ isBusy: Bool, _ route: Route, at now: WallTime) -> Bool {
        let identity = companion.identity
        let age = now - WallTime(nanoseconds: max(identity.modified, identity.changed))
        guard route.wantsMarker || age < .zero || age >= route.settle ?? settle else { return false }
        return !isBusy
    }
}

/// A file that belongs to another one, its main file.
package struct Companion: Sendable, Hashable {
    package enum Kind: String, Sendable, CaseIterable {
        /// `clip.mp4.yaml`: fields for the destination.
        case metadata
        /// `clip.mp4.xmp`
        case fullName = "full_name"
        /// `clip.xmp`
        case sameStem = "same_stem"
        /// `clip.mp4.done`: shows that the file is complete; never delivered.
        case marker
        /// Made from its main file by a program (`derive:`). It is stored elsewhere, and its ending is the rule's
        /// suffix.
        case derived
    }

    /// Below the root.
    package var path: FilePath
    package var kind: Kind
    /// The text after the last dot that does not belong to the main file, as written.
    package var ending: String

    package init(path: FilePath, kind: Kind, ending: String) {
        self.path = path
        self.kind = kind
        self.ending = ending
    }

    /// The companion's key beside its file's: `a/clip.mp4` gives `a/clip.mp4.xmp`, and `a/clip.xmp` for a companion
    /// with the same stem. A key without the file's extension keeps its own.
    package func key(beside key: String, of main: FilePath) -> String {
        let tail = (kind == .derived ? "" : ".") + ending
        var head = key[...]
        if kind == .sameStem {
            let (stem, last) = KeySanitizer.splitExtension(key)
            let own = FileName(main).extension
            let forms = [KeySanitizer.key(KeySanitizer.text(of: own).text), KeptName.text(of: own)]
            if forms.contains(where: { ("." + $0).lowercased() == last.lowercased() }) { head = stem }
        }
        return KeySanitizer.cut(head, to: KeySanitizer.limit(for: key) - tail.utf8.count) + tail
    }
}

/// The file to which a companion would belong by its name alone.
package struct CompanionMatch: Sendable {
    /// Below the root.
    package var main: FilePath
    package var companion: Companion
    /// The route that takes the main file, as far as its path shows.
    package var route: Route
}

extension Route {
    /// Whether files of this route may have companions.
    package var hasCompanions: Bool { !sidecars.isEmpty || wantsMarker }

    /// Whether each file waits for a marker of its own.
    package var wantsMarker: Bool { unit == .file && completion == .marker }

    /// Possible paths of companions of the file at `main`, likelier ones first. `.yaml` and `.yml` are alternatives,
    /// and so are the paths of one ending.
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

    /// Whether a file of this name is the main file of a companion with `ending`. An ending in both lists (a picture
    /// that is a raw file's preview, or stands alone) is a companion only of files that cannot be companions.
    private func isMain(_ name: FileName, beside ending: String) -> Bool {
        !mainExtensions.contains(ending) || !sidecars.extensions.contains { name.hasExtension($0) }
    }

    private static let metadataEndings = ["yaml", "yml"]

    /// An ending in lower and upper case.
    private static func cases(_ ending: String) -> [String] {
        let upper = ending.uppercased()
        return upper == ending ? [ending] : [ending, upper]
    }

    /// `name` without `.ending`; nil if it does not end with it.
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

    /// The possible main files of `path`, full names first.
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
    /// The possible main files of the file at `path`, likelier ones first; empty for nearly every file.
    package func belongings(of path: FilePath) -> [CompanionMatch] {
        guard hasCompanions else { return [] }
        return routes.filter(\.hasCompanions).flatMap { $0.belongings(of: path) }
            .filter { route(for: $0.main, size: nil)?.name == $0.route.name }
    }
}
