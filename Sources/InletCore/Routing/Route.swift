/// One entry of `routes:`: which files it takes, what it demands of them, where they go under which key.
package struct Route: Sendable {
    package enum OnSuccess: String, Sendable, CaseIterable, Codable {
        case keep
        case archive
        case delete
    }
    package enum OnFailure: String, Sendable, CaseIterable, Codable {
        case keep
        case quarantine
    }

    package var name: String
    package var match: RouteMatch
    package var validate: Validation
    /// nil = by extension (`Category.byExtension`).
    package var category: String?
    package var key: KeyTemplate
    package var owner: String?
    /// Destination names, at least one, no two the same.
    package var to: [String]
    /// Templates for the destination's own fields.
    package var with: [String: KeyTemplate]
    /// The fields that a sidecar may set: those that the destinations of `to` know. nil = any.
    package var sidecarFields: Set<String>?
    package var onSuccess: OnSuccess
    package var onFailure: OnFailure
    package var retry: RetryPolicy
    package var priority = RouteKeys.all.priority.standard
    /// nil = the root's.
    package var settle: Duration?
    package var sidecars: SidecarRule
    package var unit: RouteUnit
    package var completion: Completion
    /// Texts of the user's own that go with every file of the route into listings, receipts and notifications; `type:` is the
    /// one called `type`.
    package var labels: [String: KeyTemplate] = [:]
    package var receipts = RouteKeys.all.receipts.standard
    package var dedupe = RouteKeys.all.dedupe.standard
    /// What is made of its files and delivered beside them.
    package var derive: [DeriveRule] = []
    /// For `unit: folder` only.
    package var manifest: ManifestRule?
    /// nil = deliveries of big files begin at any time, too.
    package var window: DeliveryWindow?

    package init(
        name: String, match: RouteMatch = RouteMatch(), validate: Validation = Validation(), category: String? = nil,
        key: KeyTemplate = .standard, owner: String? = nil, to: [String], with: [String: KeyTemplate] = [:],
        sidecarFields: Set<String>? = nil, onSuccess: OnSuccess = RouteKeys.all.onSuccess.standard,
        onFailure: OnFailure = RouteKeys.all.onFailure.standard,
        retry: RetryPolicy = RetryPolicy(), settle: Duration? = nil, sidecars: SidecarRule = SidecarRule(),
        unit: RouteUnit = RouteKeys.all.unit.standard, completion: Completion = RouteKeys.all.completion.standard
    ) {
        self.name = name
        self.match = match
        self.validate = validate
        self.category = category
        self.key = key
        self.owner = owner
        self.to = to
        self.with = with
        self.sidecarFields = sidecarFields
        self.onSuccess = onSuccess
        self.onFailure = onFailure
        self.retry = retry
        self.settle = settle
        self.sidecars = sidecars
        self.unit = unit
        self.completion = completion
    }
}

/// `match:` — all given conditions must hold; none given matches every file.
package struct RouteMatch: Sendable {
    /// Path below the root, by gitignore's rules; any of them.
    package var paths: [GlobPattern]
    /// Lower case, without the dot; any of them; empty = any.
    package var extensions: Set<String>
    package var minSize: Int64?
    package var maxSize: Int64?
    /// What the file is by its content, any of them; empty = any.
    package var mediaTypes: [MediaTypePattern] = []

    package init(
        paths: [GlobPattern] = [], extensions: Set<String> = [], minSize: Int64? = nil, maxSize: Int64? = nil
    ) {
        self.paths = paths
        self.extensions = extensions
        self.minSize = minSize
        self.maxSize = maxSize
    }
}

/// `validate:` — a violation is a rejection with a reason, not a reason to try the next route.
package struct Validation: Sendable, Equatable {
    package var minSize: Int64?
    package var maxSize: Int64?
    /// Lower case, without the dot; nil = any.
    package var extensions: [String]?
    /// What the file may be by its content; empty = anything.
    package var mediaTypes: [MediaTypePattern] = []

    package init(minSize: Int64? = nil, maxSize: Int64? = nil, extensions: [String]? = nil) {
        self.minSize = minSize
        self.maxSize = maxSize
        self.extensions = extensions
    }
}
