package import SystemPackage

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
package struct Belonging: Sendable {
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
        if sidecars.metadata { result += SidecarNames.metadata.map { companion(.metadata, name.bytes, $0) } }
        let stem = SidecarNames.stem(name, mainExtensions)
        for ending in sidecars.extensions {
            let written = SidecarNames.cases(ending)
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

    /// The files to which `path` would belong: the full names first.
    fileprivate func belongings(of path: FilePath) -> [Belonging] {
        let folder = path.removingLastComponent()
        let bytes = FileName(path).bytes
        var result: [Belonging] = []
        func add(_ name: some Collection<UInt8>, _ kind: Companion.Kind, _ ending: String) {
            guard !name.isEmpty else { return }
            let companion = Companion(path: path, kind: kind, ending: ending)
            let main = folder.pushing(FilePath(bytes: Array(name)))
            if main != path { result.append(Belonging(main: main, companion: companion, route: self)) }
        }
        if wantsMarker, let head = SidecarNames.head(bytes, Completion.fileEnding) {
            add(head, .marker, Completion.fileEnding)
        }
        for ending in sidecars.metadata ? SidecarNames.metadata : [] {
            if let head = SidecarNames.head(bytes, ending) { add(head, .metadata, ending) }
        }
        for (ending, written) in sidecars.extensions.flatMap({ ending in
            SidecarNames.cases(ending).map { (ending, $0) }
        }) {
            guard let head = SidecarNames.head(bytes, written) else { continue }
            add(head, .fullName, written)
            for main in mainExtensions.flatMap(SidecarNames.cases) {
                let name = Array(head) + Array(".\(main)".utf8)
                if isMain(FileName(bytes: name), beside: ending) { add(name, .sameStem, written) }
            }
        }
        return result
    }
}

extension RouteTable {
    /// The files to which the one at `path` may belong, the likelier first; empty for nearly every file.
    package func belongings(of path: FilePath) -> [Belonging] {
        guard hasCompanions else { return [] }
        return routes.filter(\.hasCompanions).flatMap { $0.belongings(of: path) }
            .filter { route(for: $0.main, size: nil)?.name == $0.route.name }
    }
}

/// How names are put together and taken apart.
private enum SidecarNames {
    static let metadata = ["yaml", "yml"]

    /// An ending as it may be written: in lower and in upper case.
    static func cases(_ ending: String) -> [String] {
        let upper = ending.uppercased()
        return upper == ending ? [ending] : [ending, upper]
    }

    /// `name` without `.ending`; nil when it does not end so.
    static func head(_ name: [UInt8], _ ending: String) -> ArraySlice<UInt8>? {
        let tail = Array(".\(ending)".utf8)
        guard name.count > tail.count, name.suffix(tail.count).elementsEqual(tail) else { return nil }
        return name.dropLast(tail.count)
    }

    /// `name` without the longest of `endings` that it has.
    static func stem(_ name: FileName, _ endings: [String]) -> ArraySlice<UInt8> {
        guard let ending = endings.filter({ name.hasExtension($0) }).max(by: { $0.utf8.count < $1.utf8.count }) else {
            return name.stem
        }
        return name.bytes.dropLast(ending.utf8.count + 1)
    }
}
