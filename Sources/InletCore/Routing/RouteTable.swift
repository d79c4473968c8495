package import SystemPackage

/// The routes in the configuration's order; the first that matches a file decides about it.
package struct RouteTable: Sendable {
    package let routes: [Route]
    /// Whether any route has files that belong to others; false for most configurations, which then pay nothing for it.
    package let hasCompanions: Bool
    /// Whether any route delivers folders as one.
    package let hasUnits: Bool
    /// Whether a file's name and size say all: none of it is read, and nothing else asked for.
    package let isByName: Bool
    /// Whether anything is made of files.
    package let hasDerivations: Bool
    /// Whether a file's quiet time depends on more than its path.
    let hasVaryingSettle: Bool

    package init(_ routes: [Route]) {
        self.routes = routes
        hasCompanions = routes.contains(where: \.hasCompanions)
        hasUnits = routes.contains { $0.unit == .folder }
        hasDerivations = routes.contains { !$0.derive.isEmpty }
        isByName =
            !hasCompanions && !hasDerivations
            && routes.allSatisfy { $0.facts.isEmpty && $0.match.mediaTypes.isEmpty && $0.validate.mediaTypes.isEmpty }
        hasVaryingSettle =
            routes.contains { $0.settle != nil || $0.wantsMarker } && routes.contains { !$0.match.isByPath }
    }

    /// What to do with `arrival`. The same arguments give the same answer; `zone` is for dates whose template names
    /// none (nil = the system's).
    package func plan(_ arrival: FoundFile, facts: FileProperties, at time: WallTime, zone: String? = nil)
        -> RoutingResult
    {
        guard let route = route(for: arrival.path, size: arrival.identity.size, mediaType: facts.mediaType) else {
            return .unmatched
        }
        // What it is has a say in which route it is.
        if facts.mediaType == nil, !route.match.mediaTypes.isEmpty { return .needs([.mediaType]) }
        if let reason = route.objection(to: arrival, facts) { return .rejected(route: route, reason: reason) }
        // Nothing else is read of a file that may be refused for it.
        if facts.mediaType == nil, !route.validate.mediaTypes.isEmpty { return .needs([.mediaType]) }
        let missing = facts.missing(of: route.facts)
        return missing.isEmpty ? .plan(route.plan(arrival, facts, time, zone)) : .needs(missing)
    }

    /// The first route that takes a file of this path, size and content; where one of these is not known (nil) the first that
    /// might.
    package func route(for path: FilePath, size: Int64?, mediaType: String? = nil) -> Route? {
        routes.first { $0.match.mismatch(path, size: size, mediaType: mediaType) == nil }
    }

    /// The routes of which one takes a file of this path and size, if any does: which one, its content decides.
    package func candidates(for path: FilePath, size: Int64) -> [Route] {
        var found: [Route] = []
        for route in routes where route.match.mismatch(path, size: size, mediaType: nil) == nil {
            found.append(route)
            if route.match.mediaTypes.isEmpty { break }
        }
        return found
    }

    /// The same routes for files that are only known, not sent: nothing is read of them but what their keys need.
    package var adopting: RouteTable {
        RouteTable(
            routes.map { route in
                var route = route
                (route.dedupe, route.manifest, route.derive) = (.off, nil, [])
                return route
            })
    }

    /// Each route tried, up to and including the one that matches, with the first condition of its `match:` that did not hold,
    /// in words; nil = the route takes the file.
    package func trace(
        _ arrival: FoundFile, mediaType: String? = nil
    ) -> [(route: String, mismatch: String?)] {
        var result: [(route: String, mismatch: String?)] = []
        for route in routes {
            let mismatch = route.match.mismatch(arrival.path, size: arrival.identity.size, mediaType: mediaType)
            result.append((route.name, mismatch))
            if mismatch == nil { break }
        }
        return result
    }

    // MARK: - How long a file must be quiet: which route takes it may depend on what changes while it is written

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

extension RouteMatch {
    /// Whether nothing but the path counts.
    var isByPath: Bool { minSize == nil && maxSize == nil && mediaTypes.isEmpty }

    /// The first condition that does not hold, in words; nil when all do. What is not known (nil) is not held against it.
    func mismatch(_ path: FilePath, size: Int64?, mediaType: String?) -> String? {
        if !paths.isEmpty, !paths.contains(where: { $0.matches(path) }) {
            return "path is not under " + paths.map { "'\($0.text)'" }.joined(separator: " or ")
        }
        let name = FileName(path)
        if !extensions.isEmpty, !extensions.contains(where: { name.hasExtension($0) }) {
            return "\(name.extensionInWords) is not one of " + extensions.sorted().joined(separator: ", ")
        }
        if let size, let minSize, size < minSize {
            return ByteText.comparison(size, "under", minSize, "the minimum size")
        }
        if let size, let maxSize, size > maxSize {
            return ByteText.comparison(size, "over", maxSize, "the maximum size")
        }
        guard let mediaType, !mediaTypes.isEmpty, !mediaTypes.contains(where: { $0.matches(mediaType) }) else {
            return nil
        }
        return "its content is \(DisplayText.escape(mediaType)), not "
            + mediaTypes.map(\.text).joined(separator: " or ")
    }
}

extension Route {
    fileprivate var ownSettle: Duration? { wantsMarker ? .zero : settle }

    /// What the key and the destination's fields need to know.
    package var facts: Set<FileProperty> {
        var facts = (Array(with.values) + Array(labels.values)).reduce(into: key.facts) { $0.formUnion($1.facts) }
        if dedupe != .off { facts.insert(.sha256) }
        if let manifest { facts.insert(.digest(manifest.algorithm)) }
        return facts
    }

    /// Why the file is not accepted (`validate:`), or nil; what is not known of its content yet is not held against it.
    func objection(to arrival: FoundFile, _ facts: FileProperties) -> String? {
        let (size, file, route) = (arrival.identity.size, FileName(arrival.path), "route '\(name)'")
        if let allowed = validate.extensions, !allowed.contains(where: { file.hasExtension($0) }) {
            return "\(file.extensionInWords) is not allowed by \(route); allowed: " + allowed.joined(separator: ", ")
        }
        if let least = validate.minSize, size < least {
            return ByteText.comparison(size, "under", least, "the minimum") + " of \(route)"
        }
        if let most = validate.maxSize, size > most {
            return ByteText.comparison(size, "over", most, "the limit") + " of \(route)"
        }
        guard let found = facts.mediaType, !validate.mediaTypes.isEmpty,
            !validate.mediaTypes.contains(where: { $0.matches(found) })
        else { return nil }
        let named = MediaType.byExtension(file.plainExtension)
        // One without an extension is of an unknown type, too.
        let said = named == MediaType.unknown ? "its name does not tell" : "its name says \(named)"
        return "its content is \(DisplayText.escape(found)), \(said); \(route) takes "
            + validate.mediaTypes.map(\.text).joined(separator: ", ")
    }

    fileprivate func plan(_ arrival: FoundFile, _ facts: FileProperties, _ time: WallTime, _ zone: String?) -> Plan {
        let ext = FileName(arrival.path).plainExtension
        let category = category ?? MediaType.category(byExtension: ext)
        let fields = KeyFields(
            path: arrival.path, modified: arrival.identity.modified, owner: owner, category: category,
            sha256: facts.sha256, admitted: time, sequence: facts.sequence, captured: facts.captured, zone: zone,
            volume: arrival.volume?.name)
        let (with, notes) = merged(with.mapValues { $0.text(fields) }, facts.metadata)
        var plan = Plan(
            route: name, category: category, key: key.key(fields), mediaType: mediaType(ext, facts),
            with: with, destinations: to, onSuccess: onSuccess, onFailure: onFailure, retry: retry,
            notes: captureNotes(fields) + notes)
        // What a sidecar says is new, whatever the bytes are.
        let rule = facts.metadata.isEmpty && facts.labels.isEmpty ? dedupe : .off
        (plan.receipts, plan.dedupe, plan.manifest) = (receipts, rule, manifest)
        plan.priority = priority
        plan.window = window
        plan.labels = labels.mapValues { $0.text(fields) }.merging(facts.labels.mapValues(Self.line)) { $1 }
            .filter { !$0.value.isEmpty }
        plan.ownLabels = Set(facts.labels.keys)
        plan.digests = facts.digests.values.sorted { $0.description < $1.description }
        return plan
    }

    /// By the file's name; by its content where that tells nothing, and was read.
    private func mediaType(_ ext: String, _ facts: FileProperties) -> String {
        let named = MediaType.byExtension(ext)
        return named == MediaType.unknown ? facts.mediaType ?? named : named
    }

    /// Says when `{captured}` is not what it is called.
    private func captureNotes(_ fields: KeyFields) -> [String] {
        guard self.facts.contains(.captured) else { return [] }
        if case .at = fields.captured { return [] }
        let modified = WallTime(nanoseconds: fields.modified).rfc3339
        return ["the file has no capture date; {captured} uses its modification time, \(modified)"]
    }
}

extension FileName {
    fileprivate var extensionInWords: String {
        self.extension.isEmpty ? "a file without an extension" : "extension '\(DisplayText.escape(self.extension))'"
    }
}

extension ByteText {
    /// "4.1 GiB is over the limit of 2 GiB"; to the byte where rounding would make both the same.
    ///
    /// - Parameter word: "over" or "under".
    fileprivate static func comparison(_ size: Int64, _ word: String, _ bound: Int64, _ what: String) -> String {
        let (left, right) = (format(size), format(bound))
        return left == right
            ? "\(size) bytes is \(word) \(what) of \(bound) bytes" : "\(left) is \(word) \(what) of \(right)"
    }
}
