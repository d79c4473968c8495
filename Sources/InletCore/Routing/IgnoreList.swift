package import SystemPackage

/// Names that are never a user's file: partial downloads, leftovers of editors and systems, and our own folder.
///
/// The built-in list ignores ASCII case (`THUMBS.DB`); the user's patterns are case-sensitive globs.
package struct IgnoreList: Sendable {
    /// The built-in list for people and documentation: names with at most one `*`. In addition, temporary names of
    /// rsync (`.name.ext.aB3xYz`) are recognised by their form.
    package static let builtIn: [String] =
        systemFiles + [
            // Transfers and downloads in progress.
            "*.part", "*.partial", "*.filepart", "*.tmp", "*.temp", "*.crdownload", "*.download", "*.opdownload",
            "*.!qB", "*.!ut", "*.bc!", "*.aria2", ".pending-*", ".in.*.", ".pureftpd-upload.*", ".smbdelete*",
            ".syncthing.*.tmp", "~syncthing~*.tmp", ".goutputstream-*", ".rsync-partial", ".~tmp~",
            // Editors and office programs.
            "*~", ".~lock.*#", "~$*", ".#*", "*.swp", "*.swx",
            // Folders of macOS and Windows.
            ".Spotlight-V100", ".Trashes", ".fseventsd", ".TemporaryItems", "System Volume Information", "$RECYCLE.BIN",
            // NAS and Linux.
            "@eaDir", "#recycle", "@Recycle", ".recycle", "#snapshot", ".snapshots", ".zfs", "lost+found", ".Trash-*",
            ".nfs*", ".fuse_hidden*",
            // Other synchronisers, and Inlet.
            ".stfolder", ".stversions", ".sync", ".inlet", ".inlet.yaml",
        ]

    /// The files that macOS, Windows and Inlet write beside those of the user.
    private static let systemFiles = [
        ".DS_Store", "._*", "Thumbs.db", "desktop.ini", "ehthumbs.db", "*" + receiptSuffix,
    ]

    /// The ending of a receipt's name beside its file (`receipts: sidecar`).
    package static let receiptSuffix = ".inlet-receipt.json"

    /// In lower case: the whole name, or its beginning if it ends with `tail`.
    private typealias Pattern = (place: Int, text: String, head: [UInt8], tail: [UInt8]?)

    /// By the byte that a name begins with; patterns without a beginning by the byte that it ends with. Every listed
    /// name is asked about, and nearly all have neither byte.
    private static let patterns = builtIn.enumerated().reduce(
        into: (byFirst: [[Pattern]](repeating: [], count: 256), byLast: [[Pattern]](repeating: [], count: 256))
    ) { found, entry in
        let parts = entry.element.lowercased().split(separator: "*", omittingEmptySubsequences: false)
            .map { Array($0.utf8) }
        let pattern = (entry.offset, entry.element, parts[0], parts.count == 2 ? parts[1] : nil)
        if let first = parts[0].first {
            found.byFirst[Int(first)].append(pattern)
        } else if let last = parts.last?.last {
            found.byLast[Int(last)].append(pattern)
        }
    }
    private let user: [GlobPattern]

    /// The built-in list and the user's patterns.
    package init(user: [GlobPattern] = []) { self.user = user }

    /// Whether to ignore the file or folder at `relativePath`, or a folder above it.
    package func ignores(_ relativePath: FilePath, isDirectory: Bool) -> Bool {
        let bytes = relativePath.bytes
        return bytes.split(separator: UInt8(ascii: "/")).contains { Self.isBuiltIn(name: $0) }
            || user.contains { $0.matches(bytes, isDirectory: isDirectory) }
    }

    /// The same if the folders above are known not to be ignored, as in a walk from the top: checks only the last name
    /// and the user's patterns.
    package func ignoresName(_ relativePath: FilePath, isDirectory: Bool) -> Bool {
        let bytes = relativePath.bytes
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
        return Self.isBuiltIn(name: bytes[start...]) || user.contains { $0.matches(bytes, isDirectory: isDirectory) }
    }

    /// The ignored part of the path and the reason, in words; nil if nothing is ignored.
    package func reason(_ relativePath: FilePath, isDirectory: Bool) -> String? {
        let bytes = relativePath.bytes
        for name in bytes.split(separator: UInt8(ascii: "/")) where Self.isBuiltIn(name: name) {
            let shown = DisplayText.escape(String(decoding: name, as: UTF8.self))
            return "'\(shown)' is on the built-in ignore list: "
                + (Self.pattern(of: Self.folded(name)) ?? "rsync's temporary names")
        }
        return user.first { $0.matches(bytes, isDirectory: isDirectory) }.map { pattern in
            "it matches '\(DisplayText.escape(pattern.text))' in the folder's 'ignore'"
        }
    }

    /// Whether a name, without folders, is on the built-in list.
    package static func isBuiltIn(name: some Collection<UInt8>) -> Bool {
        pattern(of: folded(name)) != nil || name.first == UInt8(ascii: ".") && isRsyncTemporary(Array(name))
    }

    /// Whether operating systems, or Inlet itself, write a file of that name beside those of the user.
    package static func isSystemFile(name: some Collection<UInt8>) -> Bool {
        pattern(of: folded(name)).map(systemFiles.contains) ?? false
    }

    /// The first built-in pattern that matches `name`, in lower case.
    private static func pattern(of name: [UInt8]) -> String? {
        guard let first = name.first, let last = name.last else { return nil }
        func isMatch(_ pattern: Pattern) -> Bool {
            guard let tail = pattern.tail else { return name == pattern.head }
            return name.count > pattern.head.count + tail.count && name.starts(with: pattern.head)
                && name.suffix(tail.count).elementsEqual(tail)
        }
        let byLast = patterns.byLast[Int(last)].first(where: isMatch)
        guard let byFirst = patterns.byFirst[Int(first)].first(where: isMatch) else { return byLast?.text }
        guard let byLast, byLast.place < byFirst.place else { return byFirst.text }
        return byLast.text
    }

    private static func folded(_ name: some Collection<UInt8>) -> [UInt8] {
        name.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }

    /// `.NAME.XXXXXX` with six letters or digits from mkstemp. Requires a capital, or both letters and digits, to spare
    /// hidden files with a six-letter extension (`.photos.sqlite`).
    private static func isRsyncTemporary(_ name: [UInt8]) -> Bool {
        guard name.count > 8, name[0] == UInt8(ascii: "."), name[name.count - 7] == UInt8(ascii: ".") else {
            return false
        }
        let random = name.suffix(6)
        let digits = random.count { (0x30...0x39).contains($0) }
        let capitals = random.count { (0x41...0x5A).contains($0) }
        let small = random.count { (0x61...0x7A).contains($0) }
        return digits + capitals + small == 6 && (capitals > 0 || (digits > 0 && small > 0))
    }
}

/// The path of watched folders that come and go, e.g. `/media/*/DCIM`: names with `*`, `?` or `[…]`, each for one
/// folder. Matches hidden names only if the pattern starts with a dot.
package struct RootPattern: Sendable, Hashable {
    /// A name within the pattern.
    package enum Part: Sendable, Hashable {
        case name(FilePath.Component)
        case pattern(GlobPattern)

        package func matches(_ name: FilePath.Component) -> Bool {
            switch self {
            case .name(let own): return own == name
            case .pattern(let pattern):
                let path = FilePath(root: nil, [name])
                let isHidden = path.bytes.first == UInt8(ascii: ".")
                return pattern.matches(path, isDirectory: true) && (!isHidden || pattern.text.hasPrefix("/."))
            }
        }
    }

    /// The folders before the first wildcard; they need not exist.
    package let parent: FilePath
    /// The names below `parent`.
    package let parts: [Part]

    /// Whether `path` is a pattern.
    package static func isPattern(_ path: FilePath) -> Bool { path.components.contains(where: hasWildcard) }

    /// - Throws: `PatternError` for invalid patterns, with offsets into `path`'s text; `**` would be endless.
    package init(_ path: FilePath) throws(PatternError) {
        var parent = FilePath(root: path.root, [])
        var parts: [Part] = []
        var offset = parent.string.utf8.count
        for component in path.components {
            let text = component.string
            if Self.hasWildcard(component) {
                if text == "**" {
                    throw PatternError(
                        offset: offset, message: "'**' is not allowed in a watched path; write '*' for each level")
                }
                do throws(PatternError) {
                    parts.append(.pattern(try GlobPattern("/" + text)))
                } catch {
                    throw PatternError(offset: offset + max(error.offset - 1, 0), message: error.message)
                }
            } else if parts.isEmpty {
                parent.append(component)
            } else {
                parts.append(.name(component))
            }
            offset += text.utf8.count + 1
        }
        (self.parent, self.parts) = (parent, parts)
    }

    /// The folder of the pattern that contains `path`, or is it; nil if there is none.
    package func root(of path: FilePath) -> FilePath? {
        guard path.isWithin(parent) else { return nil }
        let below = Array(path.components.dropFirst(parent.components.count).prefix(parts.count))
        guard below.count == parts.count, zip(parts, below).allSatisfy({ $0.matches($1) }) else { return nil }
        return below.reduce(parent) { $0.appending($1) }
    }

    private static func hasWildcard(_ component: FilePath.Component) -> Bool {
        component.string.contains { "*?[".contains($0) }
    }
}
