package import SystemPackage

/// The path of watched folders that come and go, e.g. `/media/*/DCIM`: names with `*`, `?` or `[…]`, each for one folder.
/// Hidden names are only meant where the pattern begins with a dot.
package struct RootPattern: Sendable, Hashable {
    /// One name of it.
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

    /// The folders before the first name with a wildcard; they need not exist.
    package let parent: FilePath
    /// The names below `parent`.
    package let parts: [Part]

    /// Whether `path` is meant as a pattern.
    package static func isPattern(_ path: FilePath) -> Bool { path.components.contains(where: hasWildcard) }

    /// - Throws: `PatternError` for what cannot be understood, with offsets into `path`'s text; `**` would have no end.
    package init(_ path: FilePath) throws(PatternError) {
        var parent = FilePath(root: path.root, [])
        var parts: [Part] = []
        var offset = parent.string.utf8.count
        for component in path.components {
            let text = component.string
            if Self.hasWildcard(component) {
                if text == "**" {
                    throw PatternError(offset: offset, message: "'**' is not for watched folders; name each level: '*'")
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

    /// The folder of the pattern that `path` is, or lies in; nil when there is none.
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
