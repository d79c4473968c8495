package import InletCore
package import SystemPackage

/// A file of the library, as a test or the demo may look at it.
package struct GigHiveAsset: Sendable, Hashable {
    /// A place in an event: the same bytes may be in several.
    package struct Entry: Sendable, Hashable {
        /// `YYYY-MM-DD`.
        package var eventDate: String
        package var orgName: String
        package var eventType: String
        package var label: String
        package var participants: String
        package var keywords: String
        package var location: String
        package var rating: Int?
        package var notes: String
    }

    package var id: Int
    /// Of the content, computed by the sandbox from the bytes it stored.
    package var sha256: Digest
    /// Length in bytes.
    package var size: Int64
    /// As declared by a form, as detected after tus.
    package var mimeType: String
    /// `audio` or `video`.
    package var kind: String
    /// The file that holds the bytes.
    package var path: FilePath
    package var entries: [Entry]
}

/// What the application keeps in its database: one JSON file, written anew at each change.
struct GigHiveCatalog: Codable, Sendable {
    struct Asset: Codable, Sendable {
        var id: Int
        var sha256: String
        var fileExtension: String
        var kind: MediaKind
        var mimeType: String
        var size: Int64
        /// SHA-256 of the delete token.
        var tokenHash: String

        var fileName: String { fileExtension.isEmpty ? sha256 : "\(sha256).\(fileExtension)" }
    }

    struct Event: Codable, Sendable {
        var id: Int
        var date: String
        var orgName: String
        var type: String
        var location: String
        var keywords: String
        var notes: String
        var rating: Int?
    }

    struct Item: Codable, Sendable {
        var id: Int
        var event: Int
        var asset: Int
        var label: String
        var participants: String
        var position: Int
    }

    struct GuestUpload: Codable, Sendable {
        var id: Int
        var nonce: String
    }

    var assets: [Asset] = []
    var events: [Event] = []
    var items: [Item] = []
    var guests: [GuestUpload] = []
    private var lastID = 0

    mutating func nextID() -> Int {
        lastID += 1
        return lastID
    }

    /// The event of this date and organisation, made when it is new.
    mutating func event(_ fields: GigFields) throws(GigHiveRefusal) -> Event {
        let index = events.firstIndex { $0.date == fields.eventDate && $0.orgName == fields.orgName }
        try fields.checkEvent(isNew: index == nil)
        if let index {
            if !fields.keywords.isEmpty { events[index].keywords = fields.keywords }
            return events[index]
        }
        let event = Event(
            id: nextID(), date: fields.eventDate, orgName: fields.orgName, type: fields.eventType,
            location: fields.location, keywords: fields.keywords, notes: fields.notes, rating: fields.rating)
        events.append(event)
        return event
    }

    /// Puts an asset into an event.
    mutating func add(_ asset: Asset, to event: Event, _ fields: GigFields) throws(GigHiveRefusal) -> Item {
        try fields.checkItem()
        let position = (items.filter { $0.event == event.id }.map(\.position).max() ?? 0) + 1
        let item = Item(
            id: nextID(), event: event.id, asset: asset.id, label: fields.label, participants: fields.participants,
            position: position)
        items.append(item)
        return item
    }

    mutating func remove(_ asset: Int) {
        assets.removeAll { $0.id == asset }
        items.removeAll { $0.asset == asset }
    }

    func entries(of asset: Int) -> [GigHiveAsset.Entry] {
        items.filter { $0.asset == asset }.compactMap { item in
            events.first { $0.id == item.event }.map { event in
                GigHiveAsset.Entry(
                    eventDate: event.date, orgName: event.orgName, eventType: event.type, label: item.label,
                    participants: item.participants, keywords: event.keywords, location: event.location,
                    rating: event.rating, notes: event.notes)
            }
        }
    }
}
