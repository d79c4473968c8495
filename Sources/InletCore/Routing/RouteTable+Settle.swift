package import SystemPackage

/// How long a file must be quiet. Which route takes it may depend on its size and content, which change while it is written.
extension RouteTable {
    /// The quiet time that the first route which might take the file asks for; nil = the root's.
    /// A file with a marker of its own has none: only the marker counts.
    package func settle(for path: FilePath) -> Duration? { route(for: path, size: nil)?.ownSettle }

    /// When the file may be looked at first: the shortest of the quiet times of the routes that might take it; nil = `root`'s.
    package func shortestSettle(for path: FilePath, root: Duration) -> Duration? {
        guard hasVaryingSettle else { return settle(for: path) }
        var shortest: Duration?
        for route in routes where route.match.mismatch(path, size: nil, mediaType: nil) == nil {
            let own = route.ownSettle ?? root
            shortest = min(shortest ?? own, own)
            if route.match.isByPath { break }
        }
        return shortest
    }

    /// The quiet time of a file of that size: the longest of the routes of which its content decides; nil where `shortestSettle`
    /// said all.
    package func longestSettle(for path: FilePath, size: Int64, root: Duration) -> Duration? {
        guard hasVaryingSettle else { return nil }
        return candidates(for: path, size: size).map { $0.ownSettle ?? root }.max()
    }
}

extension Route {
    fileprivate var ownSettle: Duration? { wantsMarker ? .zero : settle }
}

extension RouteMatch {
    /// Whether nothing but the path counts.
    var isByPath: Bool { minSize == nil && maxSize == nil && mediaTypes.isEmpty }
}
