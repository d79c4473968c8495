internal import InletCore
internal import InletJournal
internal import InletPipelines
internal import SystemPackage

/// The content of an ended unit's checksum lists: one for its source folder, one for each destination.
struct UnitManifest: Sendable {
    let batch: Batch
    let rule: ManifestRule
    let jobs: [Job]
    let host: String
    let labels: CardLabels
    let version: String

    /// A destination's part of the unit: the folder that all its keys share, empty for the destination's top, and its
    /// list.
    typealias DeliveredList = (folder: String, content: ManifestContent)

    /// The delivered files, by their paths below the unit's folder.
    var source: ManifestContent {
        var content = content()
        for file in jobs.map(\.file) where file.state != .superseded {
            let path = below(file.path)
            if file.isUnitMarker {
                content.unlisted.append(path)
            } else if file.isOffloaded {
                add(file, path, to: &content)
            }
        }
        return content
    }

    /// The names of the destinations that have files of the unit.
    var destinations: [String] {
        Set(jobs.flatMap { $0.deliveries.filter(\.isOfContent).map(\.destination) }).sorted()
    }

    /// The files that `destination` has, by their names there; nil when none of them has a checksum.
    func delivered(to destination: String) -> DeliveredList? {
        let found = jobs.flatMap { job in
            job.deliveries.filter { $0.isOfContent && $0.destination == destination }
                .compactMap(\.proof).map { (file: job.file, names: KeptName.bytes(of: $0.key).split(separator: slash)) }
        }
        let listed = found.filter { digest($0.file) != nil }
        guard let shared = folder(of: listed) else { return nil }
        var content = content()
        for (file, names) in found {
            if names.starts(with: shared) {
                let path = FilePath(bytes: Array(names.dropFirst(shared.count).joined(separator: [slash])))
                add(file, path, to: &content)
            } else {
                let key = KeptName.text(of: Array(names.joined(separator: [slash])))
                content.absent.append("\(DisplayText.escape(key)) (elsewhere, and \(whyUnlisted(file)))")
            }
        }
        // A history of which a part is not there must not be continued.
        let arrived = Set(found.map(\.file.id))
        content.unlisted += jobs.map(\.file).filter { !arrived.contains($0.id) }.map { below($0.path) }
            .filter(ManifestContent.isReserved)
        content.absent += jobs.flatMap { job in
            job.deliveries.filter { $0.destination == destination }.compactMap { absence(of: job.file, $0) }
        }
        return (KeptName.text(of: Array(shared.joined(separator: [slash]))), content)
    }

    /// The unit's folder at a destination. Where keys keep the folders below the unit, it is the part before them; else
    /// the part up to the unit's own name; else all that they share. A unit whose files are all in one folder of it, such
    /// as a reel of one clip, has that folder there too.
    private func folder(of files: [(file: FileRow, names: [ArraySlice<UInt8>])]) -> ArraySlice<ArraySlice<UInt8>>? {
        guard let first = files.first else { return nil }
        let shared = files.dropFirst().reduce(first.names.dropLast()) { shared, next in
            shared.prefix(zip(shared, next.names.dropLast()).prefix { $0 == $1 }.count)
        }
        guard let unit = batch.unit else { return shared }
        let tops = files.map { file, names in
            let way = Array(below(file.path).components.dropLast())
            let isKept = names.dropLast().suffix(way.count).elementsEqual(way, by: Self.isName)
            return isKept ? names.count - 1 - way.count : nil
        }
        // Files directly in the unit tell nothing about its folders.
        let hasFolders = files.contains { below($0.file.path).components.count > 1 }
        if hasFolders, let top = tops.first ?? nil, top <= shared.count, tops.allSatisfy({ $0 == top }) {
            return shared.prefix(top)
        }
        let own = shared.lastIndex { name in unit.lastComponent.map { Self.isName(name, $0) } ?? false }
        return own.map { shared[...$0] } ?? shared
    }

    /// Whether a name of a key is that of a folder.
    private static func isName(_ name: ArraySlice<UInt8>, _ folder: FilePath.Component) -> Bool {
        folder.namesInKeys.contains(Array(name))
    }

    /// Why a destination's list lacks a file that arrived there.
    private func absence(of file: FileRow, _ delivery: DeliveryRow) -> String? {
        guard delivery.state == .delivered, delivery.closes == nil else { return nil }
        let name = below(file.path).display
        guard let proof = delivery.proof else { return "\(name) (its proof in the journal cannot be read)" }
        return !proof.isLink ? nil : "\(name) (same content as \(DisplayText.escape(proof.key)))"
    }

    /// A file that is there: in the list if it has a checksum, else named.
    private func add(_ file: FileRow, _ path: FilePath, to content: inout ManifestContent) {
        if let digest = digest(file) {
            content.entries.append(
                ManifestContent.Entry(
                    path: path, size: file.identity.size, modified: file.identity.modified, digest: digest,
                    hashedAt: file.admittedAt))
        } else {
            content.unlisted.append(path)
            content.absent.append("\(path.display) (\(whyUnlisted(file)))")
        }
    }

    private func whyUnlisted(_ file: FileRow) -> String {
        file.isDamaged ? "its journal row cannot be read" : "no \(rule.algorithm.rawValue) was computed"
    }

    /// The lists' name for a folder: the folder's, or the unit's.
    func name(for folder: String = "") -> String {
        let last = FilePath(key: folder).lastComponent ?? batch.unit?.lastComponent ?? batch.root.lastComponent
        return Self.plain(last.map { FilePath(root: nil, [$0]).display } ?? batch.name)
    }

    /// The name of a separate list, without its suffix.
    func stem(for folder: String = "") -> String {
        let end = content().stamp
        return "\(name(for: folder))_\(end)" + (batch.generation > 1 ? "_gen\(batch.generation)" : "")
    }

    /// A text that is a valid name on every file system.
    static func plain(_ text: String) -> String {
        var name = String(
            text.map { $0.isLetter || $0.isNumber || "-.".contains($0) ? $0 : "_" }.prefix(60))
        while name.utf8.count > 120 { name.removeLast() }
        return name.isEmpty || name.hasPrefix(".") ? "_" + name.dropFirst() : name
    }

    private let slash = UInt8(ascii: "/")

    /// - Parameter labels: what a person said of its card.
    init(
        _ batch: Batch, _ rule: ManifestRule, _ jobs: [Job], host: String, version: String,
        labels: CardLabels = CardLabels()
    ) {
        (self.batch, self.rule, self.host, self.version, self.labels) = (batch, rule, host, version, labels)
        // Derived files were not offloaded.
        self.jobs = jobs.filter { $0.file.role != Companion.Kind.derived.rawValue }
    }

    private func content() -> ManifestContent {
        var content = ManifestContent(
            startedAt: batch.createdAt, endedAt: batch.endedAt ?? batch.createdAt, host: host, version: version,
            entries: [])
        let missing = jobs.map(\.file).filter { !$0.isUnitMarker && !$0.isOffloaded && $0.state != .superseded }
        let said = [("roll", labels.roll), ("camera", labels.camera), ("operator", labels.operator)]
            .compactMap { name, value in value.map { "\(name) \($0)" } }
        if !said.isEmpty { content.notes.append(said.joined(separator: ", ")) }
        if !missing.isEmpty {
            let named = missing.prefix(20).map { "\(below($0.path).display) (\($0.state.rawValue))" }
            content.notes.append(
                "not delivered everywhere: " + named.joined(separator: ", ")
                    + (missing.count > 20 ? " and \(missing.count - 20) more" : ""))
        }
        return content
    }

    private func below(_ path: FilePath) -> FilePath {
        var path = path
        if let unit = batch.unit { _ = path.removePrefix(unit) }
        return path
    }

    private func digest(_ file: FileRow) -> Digest? { file.digests.first { $0.algorithm == rule.algorithm } }
}

extension FileRow {
    fileprivate var isOffloaded: Bool { state == .delivered || state == .duplicate }
}

extension DeliveryRow {
    /// Whether it brought the file's bytes to a place of their own.
    fileprivate var isOfContent: Bool {
        state == .delivered && closes == nil && key != nil
            && proof.map { $0.method != .carried && !$0.isLink } ?? false
    }
}
