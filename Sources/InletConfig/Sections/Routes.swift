import InletCore

/// `routes:`.
extension SettingsReader {
    mutating func routes() -> [Route] {
        var routes: [Route] = []
        for entry in file.routes {
            let route = route(entry)
            if !route.name.isEmpty, routes.contains(where: { $0.name == route.name }) {
                report(entry.position(\.name), "a route above has the same name")
            }
            routes.append(route)
        }
        return routes
    }

    private mutating func route(_ section: Section<RouteKeys>) -> Route {
        if let name = section.name { values.checkName(name, at: section.position(\.name), of: "a route") }
        let targets = targets(section)
        let known = knownFields(of: targets)
        var route = Route(
            name: section.name ?? "", match: match(section), validate: validation(section),
            category: word(section, \.category),
            key: template(section.key, section, \.key) ?? .standard, owner: word(section, \.owner), to: targets,
            with: fields(section, of: targets, known), sidecarFields: known.map { Set($0.map(\.name)) },
            onSuccess: section.onSuccess, onFailure: section.onFailure, retry: retry(section),
            settle: section.settle, unit: section.unit, completion: section.completion)
        route.names = nameForms(of: targets, section.names)
        route.priority = section.priority
        route.receipts = section.receipts
        route.dedupe = section.dedupe
        readSidecars(section, into: &route)
        readLabels(section, into: &route)
        readManifest(section, into: &route)
        readDerive(section, into: &route)
        route.window = window(section)
        return route
    }

    // MARK: - Which files

    private mutating func match(_ section: Section<RouteKeys>) -> RouteMatch {
        checkBounds(section, \.matchMinSize, \.matchMaxSize)
        var match = RouteMatch(
            paths: parsed(section, \.matchPath, GlobPattern.init),
            extensions: Set(extensions(section, \.matchExtensions)),
            minSize: section.matchMinSize, maxSize: section.matchMaxSize)
        match.mediaTypes = parsed(section, \.matchMediaType, MediaTypePattern.init)
        match.cameras = parsed(section, \.matchCamera, CameraPattern.init)
        return match
    }

    private mutating func validation(_ section: Section<RouteKeys>) -> Validation {
        checkBounds(section, \.validateMinSize, \.validateMaxSize)
        var validation = Validation(
            minSize: section.validateMinSize, maxSize: section.validateMaxSize,
            extensions: section.validateExtensions.map { _ in extensions(section, \.validateExtensions) })
        validation.mediaTypes = parsed(section, \.validateMediaType, MediaTypePattern.init)
        return validation
    }

    /// Reports a smallest size above the largest.
    private mutating func checkBounds(
        _ section: Section<RouteKeys>, _ least: KeyPath<RouteKeys, Key<Int64?>>,
        _ most: KeyPath<RouteKeys, Key<Int64?>>
    ) {
        guard let smallest = section[dynamicMember: least], let largest = section[dynamicMember: most],
            smallest > largest
        else { return }
        report(section.position(most), "'max_size' is smaller than 'min_size'; no file can meet both")
    }

    /// Extensions without their dot, in lower case.
    private mutating func extensions<Table>(
        _ section: Section<Table>, _ key: KeyPath<Table, Key<[String]?>>
    ) -> [String] {
        texts(section, key).compactMap { text, node in
            let bare = (text.hasPrefix(".") ? String(text.dropFirst()) : text).lowercased()
            let isPlain = !bare.contains { "/*?[".contains($0) }
            if isPlain, !bare.isEmpty, !bare.hasPrefix("."), !bare.hasSuffix(".") { return bare }
            report(node.position, "write an extension without wildcards and folders, for example mp4 or tar.gz")
            return nil
        }
    }

    // MARK: - Where they go, and how

    /// The names under `to`; each must be a destination, and appear once.
    private mutating func targets(_ section: Section<RouteKeys>) -> [String] {
        let known = file.destinations?.positions ?? [:]
        if section.to?.isEmpty == true, case .sequence(let items)? = node(section, \.to)?.content, items.isEmpty {
            report(section.position(\.to), "'to' is empty; name a destination")
        }
        var names: [String] = []
        for (name, node) in texts(section, \.to) {
            if known[name] == nil {
                reportUnknownDestination(node, known.keys.sorted())
            } else if names.contains(name) {
                report(node.position, "destination '\(name)' is named twice")
            }
            names.append(name)
        }
        return names
    }

    /// The names in the keys of `targets`, and of the destinations that store files for them.
    private func nameForms(of targets: [String], _ rule: NameRule?) -> [String: NameForm] {
        let all = targets + targets.compactMap { storage(of: $0) }
        return all.reduce(into: [:]) { forms, name in
            guard let values = file.destinations?.section(name),
                let type = values.string("type").flatMap({ type(named: $0) })
            else { return }
            forms[name] = type.nameForm(values, route: rule)
        }
    }

    /// The destinations at which names stay only because neither they nor a route to them say what becomes of names.
    func undecidedNames(_ settings: Settings) -> [String] {
        let silent = settings.destinations.filter { DestinationType.names.value(in: $0.values) == nil }.map(\.name)
        let kept = zip(file.routes, settings.routes).flatMap { entry, route in
            entry.names == nil ? route.names.filter { $0.value != .clean }.map(\.key) : []
        }
        return Set(kept).intersection(silent).sorted()
    }

    private mutating func template(
        _ text: String?, _ section: Section<RouteKeys>, _ key: KeyPath<RouteKeys, Key<some Sendable>>
    ) -> KeyTemplate? {
        guard let text, let node = node(section, key) else { return nil }
        return template(text, at: node)
    }

    private mutating func template(_ text: String, at node: YAMLNode) -> KeyTemplate? {
        parse(text, at: node, KeyTemplate.init(_:))
    }

    /// Reads an optional text. An empty one is an error, because it would silently drop a part of the key.
    private mutating func word(
        _ section: Section<RouteKeys>, _ key: KeyPath<RouteKeys, Key<String?>>
    ) -> String? {
        let text = section[dynamicMember: key]
        if text?.isEmpty == true {
            report(section.position(key), "'\(section.keyName(key))' is empty; leave the key out instead")
        }
        return text
    }

    private mutating func retry(_ section: Section<RouteKeys>) -> RetryPolicy {
        if section.retryMaxBackoff < section.retryBackoff {
            let place = section.place(\.retryMaxBackoff) ?? section.position(\.retryBackoff)
            report(place, "'max_backoff' is shorter than 'backoff'")
        }
        return RetryPolicy(
            attempts: section.retryAttempts, backoff: section.retryBackoff, maxBackoff: section.retryMaxBackoff,
            expire: section.retryExpire)
    }

    // MARK: - Fields of the destinations

    /// The templates under `with`, and the defaults of the other fields that `targets` support.
    private mutating func fields(
        _ section: Section<RouteKeys>, of targets: [String], _ known: [FieldSpec]?
    ) -> [String: KeyTemplate] {
        var fields: [String: KeyTemplate] = [:]
        for (entry, text) in entries(section, \.with) {
            if let known, !known.contains(where: { $0.name == entry.key }) {
                reportUnknownField(entry, known, targets)
            } else if let text {
                checkChoice(text, at: entry, known ?? [])
                fields[entry.key] = template(text, at: entry.value)
            }
        }
        return FieldSpec.filled(fields, known ?? [])
    }

    /// The fields of the types of `targets`, each name once; nil when a destination has an error of its own.
    private func knownFields(of targets: [String]) -> [FieldSpec]? {
        var known: [FieldSpec] = []
        for target in targets {
            guard let name = file.destinations?.section(target)?.string("type"), let type = type(named: name) else {
                return nil
            }
            known += type.fields.filter { spec in !known.contains { $0.name == spec.name } }
        }
        return targets.isEmpty ? nil : known
    }

    /// Reports a word that no destination accepts. Templates are checked for each file instead.
    private mutating func checkChoice(_ text: String, at entry: YAMLNode.Entry, _ known: [FieldSpec]) {
        let choices = known.first { $0.name == entry.key }?.choices ?? []
        guard !choices.isEmpty, !text.contains(where: { "{}".contains($0) }), !text.allSatisfy(\.isWhitespace),
            !choices.contains(text.lowercased())
        else { return }
        let hint = Suggestion.hint(text, in: choices)
        report(
            entry.value.position,
            "\(SecretMask.quoted(entry.key)) must be one of \(choices.joined(separator: ", ")), not \(SecretMask.quoted(text))\(hint)"
        )
    }

    private mutating func reportUnknownField(_ entry: YAMLNode.Entry, _ known: [FieldSpec], _ targets: [String]) {
        let names = known.map(\.name)
        let hint =
            if names.isEmpty {
                targets.count == 1
                    ? "destination '\(targets[0])' takes no fields" : "none of this route's destinations takes fields"
            } else if let name = Suggestion.nearest(to: entry.key, in: names) {
                "did you mean '\(name)'?"
            } else {
                "known fields: \(names.joined(separator: ", "))"
            }
        report(entry.keyPosition, "unknown field \(SecretMask.quoted(entry.key)) in with; \(hint)")
    }

    // MARK: - Companions and units

    private mutating func readSidecars(_ section: Section<RouteKeys>, into route: inout Route) {
        route.sidecars = SidecarRule(
            metadata: section.sidecarsMetadata, extensions: extensions(section, \.sidecarsExtensions),
            wait: section.sidecarsWait)
        guard !route.sidecars.extensions.isEmpty else { return }
        let place = section.position(\.sidecarsExtensions)
        if route.match.extensions.isEmpty, route.validate.extensions?.isEmpty ?? true {
            report(
                place,
                "add 'extensions' to match or validate: sidecars need the extensions of the files they belong to"
            )
        }
        if let types = typesWithoutCompanions(route.to) {
            report(
                place,
                "no destination of this route can store sidecars (type \(types)); use only 'metadata', which goes with the file"
            )
        }
    }

    private mutating func readLabels(_ section: Section<RouteKeys>, into route: inout Route) {
        if let type = template(section.type, section, \.type) { route.labels["type"] = type }
        for case (let entry, let text?) in entries(section, \.labels) {
            if entry.key == "type", route.labels["type"] != nil {
                report(entry.value.position, "'type' is given twice: as a key of the route, and here")
            }
            route.labels[entry.key] = template(text, at: entry.value)
        }
    }

    private mutating func readManifest(_ section: Section<RouteKeys>, into route: inout Route) {
        guard let format = ManifestRule.Format(rawValue: section.manifestFormat) else { return }
        route.manifest = ManifestRule(format: format, algorithm: section.manifestHash)
        if route.unit != .folder {
            report(section.position(\.manifestFormat), "add 'unit: folder': a manifest lists the files of a unit")
        }
    }

    // MARK: - Derived files

    private mutating func readDerive(_ section: Section<RouteKeys>, into route: inout Route) {
        for entry in section.derive {
            guard let rule = deriveRule(entry) else { continue }
            if route.derive.contains(where: { $0.name == rule.name && $0.extensions == rule.extensions }) {
                report(entry.values.position, "give this rule another 'name': a rule above has the same name")
            }
            route.derive.append(rule)
        }
        guard !route.derive.isEmpty, let place = section.place(\.derive),
            let types = typesWithoutCompanions(route.to)
        else { return }
        report(place, "no destination of this route can store derived files (type \(types))")
    }

    private mutating func deriveRule(_ section: Section<DeriveKeys>) -> DeriveRule? {
        var rule = section.thumbnail?.rule ?? DeriveRule(name: "", command: [], suffix: "")
        if let name = section.name { rule.name = name }
        if let command = section.command { rule.command = command }
        if section.extensions != nil { rule.extensions = extensions(section, \.extensions) }
        if let suffix = section.suffix { rule.suffix = suffix }
        rule.timeout = section.timeout
        rule.maxSize = section.maxSize
        guard let (place, message) = Self.problem(rule, section) else { return rule }
        report(place, message)
        return nil
    }

    private static func problem(
        _ rule: DeriveRule, _ section: Section<DeriveKeys>
    ) -> (SourcePosition, message: String)? {
        if rule.name.isEmpty {
            return (
                section.position(\.name), "a rule of 'derive' needs 'thumbnail', or 'name', 'command' and 'suffix'"
            )
        }
        if rule.command.isEmpty { return (section.position(\.command), "'command' is empty; name a program") }
        for word in [DeriveRule.input, DeriveRule.output] where !rule.command.contains(where: { $0.contains(word) }) {
            return (section.position(\.command), "'command' must contain \(word)")
        }
        if rule.suffix.isEmpty || rule.suffix.contains("/") || !rule.suffix.contains(".") {
            return (
                section.position(\.suffix),
                "'suffix' must end with an extension and contain no '/', as in .thumb.jpg"
            )
        }
        if rule.suffix.utf8.count > 64 { return (section.position(\.suffix), "'suffix' must have at most 64 bytes") }
        return nil
    }
}
