import InletCore

extension SettingsReader {
    mutating func routes(_ section: ConfigSection) -> [Route] {
        let known = section.section("destinations")
        var routes: [Route] = []
        for entry in sections("routes", of: section, root) {
            let route = route(entry.section, entry.node, destinations: known)
            if !route.name.isEmpty, routes.contains(where: { $0.name == route.name }) {
                report(position("name", entry.section), "a route above has the same name")
            }
            routes.append(route)
        }
        return routes
    }

    private mutating func route(
        _ section: ConfigSection, _ node: YAMLNode, destinations: ConfigSection?
    ) -> Route {
        var route = Route(name: section.string("name") ?? "", to: [])
        if section.string("name") != nil {
            values.checkName(route.name, at: position("name", section), of: "a route")
        }
        if let section = section.section("match"), let node = node["match"] { route.match = match(section, node) }
        if let section = section.section("validate"), let node = node["validate"] {
            route.validate = validation(section, node)
        }
        route.category = word("category", section)
        route.owner = word("owner", section)
        route.key = template("key", section, node) ?? route.key
        route.to = targets(section, node, destinations?.positions ?? [:])
        route.with = fields(section, node, of: route.to, destinations)
        if let choice = section.string("on_success").flatMap(Route.OnSuccess.init) { route.onSuccess = choice }
        if let choice = section.string("on_failure").flatMap(Route.OnFailure.init) { route.onFailure = choice }
        if let section = section.section("retry") { route.retry = retry(section) }
        if let choice = section.string("priority").flatMap(Priority.init(rawValue:)) { route.priority = choice }
        route.settle = section.duration("settle")
        route.sidecarFields = knownFields(of: route.to, destinations).map { Set($0.map(\.name)) }
        readSets(section, node, into: &route)
        readEvidence(section, node, into: &route)
        readDerive(section, node, into: &route)
        route.window = window(section)
        return route
    }

    private mutating func match(_ section: ConfigSection, _ node: YAMLNode) -> RouteMatch {
        checkBounds(section)
        var match = RouteMatch(
            paths: patterns("path", section, node), extensions: Set(extensions(section, node)),
            minSize: section.bytes("min_size"), maxSize: section.bytes("max_size"))
        match.mediaTypes = mediaTypes(section, node)
        return match
    }

    private mutating func validation(_ section: ConfigSection, _ node: YAMLNode) -> Validation {
        checkBounds(section)
        let extensions = section.values["extensions"] == nil ? nil : extensions(section, node)
        var validation = Validation(
            minSize: section.bytes("min_size"), maxSize: section.bytes("max_size"), extensions: extensions)
        validation.mediaTypes = mediaTypes(section, node)
        return validation
    }

    private mutating func mediaTypes(_ section: ConfigSection, _ node: YAMLNode) -> [MediaTypePattern] {
        texts("media_type", section, node).compactMap { text, node in
            parse(text, at: node) { text throws(PatternError) in try MediaTypePattern(text) }
        }
    }

    /// Reports a smallest size above the largest.
    private mutating func checkBounds(_ section: ConfigSection) {
        guard let least = section.bytes("min_size"), let most = section.bytes("max_size"), least > most else { return }
        report(position("max_size", section), "'max_size' is smaller than 'min_size'; no file could have both")
    }

    /// Extensions without their dot, in lower case.
    mutating func extensions(_ section: ConfigSection, _ node: YAMLNode) -> [String] {
        texts("extensions", section, node).compactMap { text, node in
            let bare = (text.hasPrefix(".") ? String(text.dropFirst()) : text).lowercased()
            let isPlain = !bare.contains { "/*?[".contains($0) }
            if isPlain, !bare.isEmpty, !bare.hasPrefix("."), !bare.hasSuffix(".") { return bare }
            report(node.position, "an extension has no wildcards and no folders; write for example mp4, or tar.gz")
            return nil
        }
    }

    /// The names under `to`, each of which must be a key of `known`, and none twice.
    private mutating func targets(
        _ section: ConfigSection, _ node: YAMLNode, _ known: [String: SourcePosition]
    ) -> [String] {
        let targets = texts("to", section, node)
        if case .list(let items)? = section.values["to"], items.isEmpty, node["to"]?.items.isEmpty == true,
            case .sequence? = node["to"]?.content
        {
            report(position("to", section), "'to' names no destination")
        }
        var names: [String] = []
        for (name, node) in targets {
            if known[name] == nil {
                reportUnknownDestination(node, known.keys.sorted())
            } else if names.contains(name) {
                report(node.position, "destination '\(name)' is named twice")
            }
            names.append(name)
        }
        return names
    }

    mutating func reportUnknownDestination(_ node: YAMLNode, _ known: [String]) {
        guard case .scalar(let written, _) = node.content else { return }
        let hint =
            if known.isEmpty {
                "no destinations are defined"
            } else if let name = Suggestion.nearest(to: written, in: known) {
                "did you mean '\(name)'?"
            } else {
                "defined are: \(known.filter(Quotation.isHarmless).map { DisplayText.escape($0) }.joined(separator: ", "))"
            }
        report(node.position, "unknown destination \(Quotation.of(written)); \(hint)")
    }

    mutating func template(_ key: String, _ section: ConfigSection, _ node: YAMLNode) -> KeyTemplate? {
        guard let text = section.string(key), let value = node[key] else { return nil }
        return parse(text, at: value) { text throws(PatternError) in try KeyTemplate(text) }
    }

    /// A text that may be left out but not left empty: an empty one would silently drop a part of the key.
    private mutating func word(_ key: String, _ section: ConfigSection) -> String? {
        guard let text = section.string(key) else { return nil }
        if text.isEmpty { report(position(key, section), "'\(key)' is empty; leave the key out instead") }
        return text
    }

    private mutating func retry(_ section: ConfigSection) -> RetryPolicy {
        var policy = RetryPolicy()
        if let attempts = section.integer("attempts") { policy.attempts = attempts }
        if let backoff = section.duration("backoff") { policy.backoff = backoff }
        if let longest = section.duration("max_backoff") { policy.maxBackoff = longest }
        if section.values["expire"] != nil { policy.expire = section.duration("expire") }
        if policy.maxBackoff < policy.backoff {
            let key = section.positions["max_backoff"] == nil ? "backoff" : "max_backoff"
            report(position(key, section), "'max_backoff' is shorter than 'backoff'")
        }
        return policy
    }

    /// Where the value of `key` stands, or its section when it came from the defaults.
    func position(_ key: String, _ section: ConfigSection) -> SourcePosition {
        section.positions[key] ?? section.position
    }
}
