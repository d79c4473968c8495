package import SystemPackage

/// The routes in the configuration's order; the first that matches a file decides.
package struct RouteTable: Sendable {
    package let routes: [Route]
    /// Whether any route has companions; false for most configurations, which then need no work for them.
    package let hasCompanions: Bool
    /// Whether any route delivers folders as one.
    package let hasUnits: Bool
    /// Whether a file's name and size suffice, so that nothing is read from it.
    package let isByName: Bool
    /// Whether any route makes files from its files.
    package let hasDerivations: Bool
    /// Whether any route uses labels of cards.
    package let usesCardLabels: Bool
    /// Whether a file's quiet time depends on more than its path.
    let hasVaryingSettle: Bool
    /// Of each route, gathered once.
    private let facts: [(ofMatch: Set<FileProperty>, ofPlan: Set<FileProperty>)]

    package init(_ routes: [Route]) {
        self.routes = routes
        facts = routes.map { ($0.match.facts, $0.facts) }
        hasCompanions = routes.contains(where: \.hasCompanions)
        hasUnits = routes.contains { $0.unit == .folder }
        hasDerivations = routes.contains { !$0.derive.isEmpty }
        isByName =
            !hasCompanions && !hasDerivations
            && routes.allSatisfy { $0.facts.isEmpty && $0.match.facts.isEmpty && $0.validate.mediaTypes.isEmpty }
        usesCardLabels = routes.contains { $0.facts.contains { $0.label != nil } }
        hasVaryingSettle =
            routes.contains { $0.settle != nil || $0.wantsMarker } && routes.contains { !$0.match.isByPath }
    }

    /// The decision about `arrival`. Equal arguments give equal results; `zone` is for dates without a zone (nil for
    /// the system's).
    package func plan(_ arrival: FoundFile, facts: FileProperties, at time: WallTime, zone: String? = nil)
        -> RoutingResult
    {
        guard let place = place(for: arrival.path, size: arrival.identity.size, facts) else { return .unmatched }
        let route = routes[place]
        // The content can decide which route it is.
        let undecided = facts.missing(of: self.facts[place].ofMatch)
        if !undecided.isEmpty { return .needs(undecided) }
        if let reason = route.objection(to: arrival, facts) { return .rejected(route: route, reason: reason) }
        // Reads nothing else of a file that may be rejected for its content.
        if facts.mediaType == nil, !route.validate.mediaTypes.isEmpty { return .needs([.mediaType]) }
        let missing = facts.missing(of: self.facts[place].ofPlan)
        return missing.isEmpty ? .plan(route.plan(arrival, facts, time, zone)) : .needs(missing)
    }

    /// The first route that takes a file of this path, size and content; if one of these is unknown (nil), the first
    /// that might.
    package func route(for path: FilePath, size: Int64?, facts: FileProperties = FileProperties()) -> Route? {
        place(for: path, size: size, facts).map { routes[$0] }
    }

    private func place(for path: FilePath, size: Int64?, _ facts: FileProperties) -> Int? {
        routes.indices.first { routes[$0].match.holds(path, size: size, facts) }
    }

    /// The labels of its card that the file waits for (`ask: wait`). None while its content decides between routes: the
    /// facts for that come first.
    package func awaitedLabels(of arrival: FoundFile, facts: FileProperties) -> Set<CardLabels.Field> {
        guard usesCardLabels, facts.awaitsCard, facts.card != nil,
            case .needs(let wanted) = plan(arrival, facts: facts, at: WallTime(milliseconds: 0))
        else { return [] }
        return Set(wanted.compactMap(\.label))
    }

    /// The possible routes of a file with this path and size; its content decides between them.
    package func candidates(for path: FilePath, size: Int64) -> [Route] {
        var found: [Route] = []
        for route in routes where route.match.holds(path, size: size) {
            found.append(route)
            if route.match.facts.isEmpty { break }
        }
        return found
    }

    /// The same routes for files that are adopted, not sent: reads only what their keys need.
    package var adopting: RouteTable {
        RouteTable(
            routes.map { route in
                var route = route
                (route.dedupe, route.manifest, route.derive) = (.off, nil, [])
                return route
            })
    }

    /// The routes tried, up to the one that matches, each with the first condition of its `match:` that failed, in
    /// words; nil if the route takes the file.
    package func trace(
        _ arrival: FoundFile, facts: FileProperties = FileProperties()
    ) -> [(route: String, mismatch: String?)] {
        var result: [(route: String, mismatch: String?)] = []
        for route in routes {
            let mismatch = route.match.mismatch(arrival.path, size: arrival.identity.size, facts)
            result.append((route.name, mismatch))
            if mismatch == nil { break }
        }
        return result
    }

    // MARK: - Quiet times: the route may depend on what changes during writing

    /// The quiet time of the first route that might take the file; nil for the root's. A file with its own marker has
    /// none: only the marker counts.
    package func settle(for path: FilePath) -> Duration? {
        place(for: path, size: nil, FileProperties()).flatMap { routes[$0].ownSettle }
    }

    /// When to look at the file first: the shortest quiet time of the possible routes; nil for `root`'s.
    package func shortestSettle(for path: FilePath, root: Duration) -> Duration? {
        guard hasVaryingSettle else { return settle(for: path) }
        var shortest: Duration?
        for route in routes where route.match.holds(path, size: nil) {
            let own = route.ownSettle ?? root
            shortest = min(shortest ?? own, own)
            if route.match.isByPath { break }
        }
        return shortest
    }

    /// The quiet time of a file of that size: the longest of the routes between which its content decides; nil if
    /// `shortestSettle` suffices.
    package func longestSettle(for path: FilePath, size: Int64, root: Duration) -> Duration? {
        guard hasVaryingSettle else { return nil }
        return candidates(for: path, size: size).map { $0.ownSettle ?? root }.max()
    }
}

extension RouteMatch {
    /// Whether only the path counts.
    var isByPath: Bool { minSize == nil && maxSize == nil && facts.isEmpty }

    /// The facts that the conditions need, beyond path and size.
    package var facts: Set<FileProperty> {
        if mediaTypes.isEmpty, cameras.isEmpty { return [] }
        return Set((mediaTypes.isEmpty ? [] : [.mediaType]) + (cameras.isEmpty ? [] : [.camera]))
    }

    private enum Failure {
        case path
        case fileExtension(FileName)
        case tooSmall(Int64, least: Int64)
        case tooLarge(Int64, most: Int64)
        case mediaType(String)
        case camera(Camera)
    }

    /// The first condition that fails; nil if all hold. Unknown values (nil) do not fail.
    private func failure(_ path: FilePath, _ size: Int64?, _ facts: FileProperties) -> Failure? {
        if !paths.isEmpty, !paths.contains(where: { $0.matches(path) }) { return .path }
        if !extensions.isEmpty {
            let name = FileName(path)
            if !extensions.contains(where: { name.hasExtension($0) }) { return .fileExtension(name) }
        }
        if let size, let minSize, size < minSize { return .tooSmall(size, least: minSize) }
        if let size, let maxSize, size > maxSize { return .tooLarge(size, most: maxSize) }
        if let found = facts.mediaType, !mediaTypes.isEmpty, !mediaTypes.contains(where: { $0.matches(found) }) {
            return .mediaType(found)
        }
        if let camera = facts.camera, !cameras.isEmpty, !cameras.contains(where: { $0.matches(camera) }) {
            return .camera(camera)
        }
        return nil
    }

    func holds(_ path: FilePath, size: Int64?, _ facts: FileProperties = FileProperties()) -> Bool {
        failure(path, size, facts) == nil
    }

    /// The first condition that fails, in words; nil if all hold.
    func mismatch(_ path: FilePath, size: Int64?, _ facts: FileProperties = FileProperties()) -> String? {
        switch failure(path, size, facts) {
        case nil: return nil
        case .path: return "path is not under " + paths.map { "'\($0.text)'" }.joined(separator: " or ")
        case .fileExtension(let name):
            return "\(name.extensionInWords) is not one of " + extensions.sorted().joined(separator: ", ")
        case .tooSmall(let size, let least): return ByteText.comparison(size, "under", least, "the minimum size")
        case .tooLarge(let size, let most): return ByteText.comparison(size, "over", most, "the maximum size")
        case .mediaType(let found):
            return "its content is \(DisplayText.escape(found)), not "
                + mediaTypes.map(\.text).joined(separator: " or ")
        case .camera(let camera):
            let wanted = cameras.map { DisplayText.escape($0.text) }.joined(separator: " or ")
            return camera.name.map { "its camera is \(DisplayText.escape($0)), not \(wanted)" }
                ?? "its camera is unknown; the route takes only \(wanted)"
        }
    }
}

extension Route {
    fileprivate var ownSettle: Duration? { wantsMarker ? .zero : settle }

    /// The facts that the key and the destination's fields need.
    package var facts: Set<FileProperty> {
        var facts = (Array(with.values) + Array(labels.values)).reduce(into: key.facts) { $0.formUnion($1.facts) }
        if dedupe != .off { facts.insert(.sha256) }
        if let manifest { facts.insert(.digest(manifest.algorithm)) }
        return facts
    }

    /// Why `validate:` rejects the file, or nil; unknown content is not rejected.
    func objection(to arrival: FoundFile, _ facts: FileProperties) -> String? {
        // Nearly all routes take any file.
        if validate == Validation() { return nil }
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
        // A name without an extension gives an unknown type, too.
        let said = named == MediaType.unknown ? "its name does not tell" : "its name says \(named)"
        return "its content is \(DisplayText.escape(found)), \(said); \(route) takes "
            + validate.mediaTypes.map(\.text).joined(separator: ", ")
    }

    fileprivate func plan(_ arrival: FoundFile, _ facts: FileProperties, _ time: WallTime, _ zone: String?) -> Plan {
        let ext = FileName(arrival.path).plainExtension
        let category = category ?? MediaType.category(byExtension: ext)
        var fields = KeyFields(
            path: arrival.path, modified: arrival.identity.modified, owner: owner, category: category,
            sha256: facts.sha256, admitted: time, sequence: facts.sequence, captured: facts.captured, zone: zone,
            volume: arrival.volume?.name)
        (fields.camera, fields.card) = (facts.camera, facts.card)
        let rendered = with.isEmpty ? [:] : with.mapValues { $0.text(fields) }
        let (with, notes) = facts.metadata.isEmpty ? (rendered, []) : merged(rendered, facts.metadata)
        let keys = keys(fields)
        var plan = Plan(
            route: name, category: category, key: keys.first, mediaType: mediaType(ext, facts),
            with: with, destinations: to, onSuccess: onSuccess, onFailure: onFailure, retry: retry,
            notes: captureNotes(fields) + notes + nameNotes(arrival.path))
        plan.otherKeys = keys.others
        // A sidecar's content is new, whatever the bytes are.
        let rule = facts.metadata.isEmpty && facts.labels.isEmpty ? dedupe : .off
        (plan.receipts, plan.dedupe, plan.manifest) = (receipts, rule, manifest)
        plan.priority = priority
        plan.window = window
        if !labels.isEmpty || !facts.labels.isEmpty {
            plan.labels = labels.mapValues { $0.text(fields) }.merging(facts.labels.mapValues(Self.line)) { $1 }
                .filter { !$0.value.isEmpty }
            plan.ownLabels = Set(facts.labels.keys)
        }
        plan.digests = facts.digests.values.sorted { $0.description < $1.description }
        return plan
    }

    /// The key for the first destination, and those of destinations whose names have another form.
    private func keys(_ fields: KeyFields) -> (first: String, others: [String: String]) {
        if names.isEmpty { return (key.key(fields), [:]) }
        let form = to.first.flatMap { names[$0] } ?? .clean
        let first = key.key(fields, form)
        let others = names.filter { $0.value != form }
        if others.isEmpty { return (first, [:]) }
        return (first, others.mapValues { key.key(fields, $0) })
    }

    /// Notes the destinations that keep names, but cannot hold one as it is.
    private func nameNotes(_ path: FilePath) -> [String] {
        if names.isEmpty { return [] }
        let whole = KeptName.text(of: path.bytes)
        return to.compactMap { destination in
            guard let form = names[destination], form != .clean else { return nil }
            let kept = KeptName.key(whole, form)
            if kept.utf8.elementsEqual(whole.utf8) { return nil }
            return "\(destination) cannot hold a name of its path, and gets it as \(DisplayText.escape(kept))"
        }
    }

    /// By the file's name; by its content if the name gives no type and the content was read.
    private func mediaType(_ ext: String, _ facts: FileProperties) -> String {
        let named = MediaType.byExtension(ext)
        return named == MediaType.unknown ? facts.mediaType ?? named : named
    }

    /// Notes a `{captured}` that is not a capture date.
    private func captureNotes(_ fields: KeyFields) -> [String] {
        // A plan has all the facts that it asks for.
        guard let captured = fields.captured, self.facts.contains(.captured) else { return [] }
        if case .at = captured { return [] }
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
    /// "4.1 GiB is over the limit of 2 GiB"; in bytes if rounding would make both equal.
    ///
    /// - Parameter word: "over" or "under".
    fileprivate static func comparison(_ size: Int64, _ word: String, _ bound: Int64, _ what: String) -> String {
        let (left, right) = (format(size), format(bound))
        return left == right
            ? "\(size) bytes is \(word) \(what) of \(bound) bytes" : "\(left) is \(word) \(what) of \(right)"
    }
}
