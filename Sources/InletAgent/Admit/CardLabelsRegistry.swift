internal import InletCore
internal import Synchronization
internal import SystemPackage

/// The labels that people gave to the inserted cards, and the files that wait for labels (`ask: wait`).
///
/// A card's key is `VolumeIdentity.key`; the key of a watched folder on it (`Volume.key`) is that, a slash, and the folder.
final class CardLabelsRegistry: Sendable {
    private struct State: Sendable {
        /// By the cards' keys.
        var labels: [String: CardLabels] = [:]
        /// By the watched folders' keys.
        var held: [String: (root: FilePath, files: Set<FilePath>)] = [:]

        func labels(of volumeKey: String) -> CardLabels? {
            labels.filter { CardLabelsRegistry.isOn($0.key, volumeKey) }.max { $0.key.utf8.count < $1.key.utf8.count }?
                .value
        }
    }

    /// Of one folder; others are looked at again after `LabelWait.pause`.
    private static let mostHeld = 60_000

    private let state = Mutex(State())

    /// The labels of the card with a watched folder; nil if nobody gave any.
    func labels(of volumeKey: String) -> CardLabels? { state.withLock { $0.labels(of: volumeKey) } }

    /// - Parameter labels: nil to forget them.
    /// - Returns: the files that waited for them, by their roots: they can be looked at again now.
    func set(_ labels: CardLabels?, of cardKey: String) -> [(root: FilePath, files: Set<FilePath>)] {
        state.withLock { state in
            guard state.labels[cardKey] != labels else { return [] }
            state.labels[cardKey] = labels
            let keys = state.held.keys.filter { Self.isOn(cardKey, $0) }
            return keys.compactMap { state.held.removeValue(forKey: $0) }
        }
    }

    /// Remembers a file that waits for labels. - Returns: false if the card has all of them now.
    func hold(_ path: FilePath, for missing: Set<CardLabels.Field>, of volumeKey: String, at root: FilePath) -> Bool {
        state.withLock { state in
            let labels = state.labels(of: volumeKey)
            guard missing.contains(where: { labels?[$0] == nil }) else { return false }
            var held = state.held[volumeKey] ?? (root, [])
            if held.root != root { held = (root, []) }
            if held.files.count < Self.mostHeld { held.files.insert(path) }
            state.held[volumeKey] = held
            return true
        }
    }

    /// Remembers a companion of a file that waits. - Returns: that file; nil if none of `mains` waits.
    func hold(_ companion: FilePath, with mains: [FilePath], of volumeKey: String) -> FilePath? {
        state.withLock { state in
            guard let held = state.held[volumeKey], let main = mains.first(where: held.files.contains) else {
                return nil
            }
            if held.files.count < Self.mostHeld { state.held[volumeKey]?.files.insert(companion) }
            return main
        }
    }

    /// Whether files of the watched folder wait for labels.
    func isHolding(_ volumeKey: String) -> Bool { state.withLock { $0.held[volumeKey]?.files.isEmpty == false } }

    /// The card was removed: its files wait no longer. Its labels stay until they are set to nil.
    func release(_ volumeKey: String) { state.withLock { $0.held[volumeKey] = nil } }

    private static func isOn(_ cardKey: String, _ volumeKey: String) -> Bool { volumeKey.hasPrefix(cardKey + "/") }
}

extension Shared {
    /// Sets the labels of a card; nil forgets them. Files that waited for them are looked at again at once.
    func setCardLabels(_ labels: CardLabels?, of cardKey: String) {
        for (root, files) in cardLabels.set(labels, of: cardKey) { roots.lookNow(at: files, in: root) }
    }
}

/// Files that are held until a person has given the labels of their card that their keys or labels need.
struct LabelWait: Sendable {
    /// Before such a file is looked at again; labels wake it at once.
    static let pause = Duration.seconds(600)

    /// The labels that files lacked at their last admission, where only their content decides which.
    private var missing: [FilePath: Set<CardLabels.Field>] = [:]
    private static let most = 60_000
    /// The last reason that was logged.
    private var said: String?

    mutating func note(_ path: FilePath, lacks labels: Set<CardLabels.Field>) {
        if labels.isEmpty {
            if !missing.isEmpty { missing[path] = nil }
        } else if missing.count < Self.most {
            missing[path] = labels
        }
    }

    /// Those of its last admission that it still lacks.
    mutating func missing(_ path: FilePath, _ labels: CardLabels) -> Set<CardLabels.Field> {
        guard let before = missing[path] else { return [] }
        let left = before.filter { labels[$0] == nil }
        note(path, lacks: left)
        return left
    }

    /// Whether the reason was not logged before.
    mutating func isNews(_ reason: String) -> Bool {
        defer { said = reason }
        return said != reason
    }

    /// The reason with its remedy, for people: "waiting for the card's roll: inlet cards label EOS_DIGITAL --roll A001".
    static func reason(_ missing: Set<CardLabels.Field>, card: String) -> String {
        let fields = CardLabels.Field.allCases.filter(missing.contains)
        let options = fields.map { field in
            switch field {
            case .roll: "--roll A001"
            case .camera, .operator: "--\(field.rawValue) NAME"
            }
        }
        let name = DisplayText.shellWord(DisplayText.escape(card))
        return "waiting for the card's \(fields.map(\.rawValue).joined(separator: " and ")): inlet cards label \(name) "
            + options.joined(separator: " ")
    }
}

extension AdmissionStage {
    /// The look at a new file that waits for labels of its card; nil if it can be admitted.
    mutating func awaitsLabels(_ arrival: FoundFile) -> Settler.Look? {
        guard settings.ask == .wait, admission.routes.usesCardLabels, let volume, let key = volume.key else {
            return nil
        }
        let registry = admission.shared.cardLabels
        let mains = admission.routes.belongings(of: arrival.path).map(\.main)
        if let main = registry.hold(arrival.path, with: mains, of: key) {
            return .waiting(for: LabelWait.pause, why: "waiting for its file \(Self.name(main))")
        }
        while true {
            let facts = facts(of: arrival)
            var missing = labelWait.missing(arrival.path, facts.card ?? CardLabels())
            // A companion goes with its file, whatever route would take it.
            if missing.isEmpty, mains.isEmpty { missing = admission.routes.awaitedLabels(of: arrival, facts: facts) }
            if missing.isEmpty { return nil }
            // Otherwise they were given just now.
            guard registry.hold(arrival.path, for: missing, of: key, at: root) else { continue }
            let reason = LabelWait.reason(missing, card: volume.name)
            if labelWait.isNews(reason) { log.emit(.fileAwaited(path: root.pushing(arrival.path), reason: reason)) }
            return .waiting(for: LabelWait.pause, why: reason)
        }
    }

    /// The facts about a file that are known without reading it.
    func facts(of arrival: FoundFile) -> FileProperties {
        var facts = remembered(arrival.path, arrival.identity)
        guard admission.routes.usesCardLabels else { return facts }
        facts.card = volume?.key.flatMap(admission.shared.cardLabels.labels) ?? CardLabels()
        facts.awaitsCard = settings.ask == .wait && volume?.key != nil
        return facts
    }
}
