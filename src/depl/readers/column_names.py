"""What people call the columns of title, text, labels and id, in several languages."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

Role = Literal["title", "text", "labels", "id"]

_NAMES: dict[Role, str] = {
    "title": """
        title titles maintitle titlestatement headline subtitle
        titel haupttitel sachtitel überschrift untertitel zusatzzumtitel
        titre soustitre título subtítulo titolo sottotitolo rubrik otsikko tittel tytuł název naslov
        ondertitel cím titlu
    """,
    "text": """
        text texts fulltext abstract abstracts summary description descriptionabstract
        content contents body document article paragraph sentence note notes annotation
        volltext beschreibung zusammenfassung kurzfassung kurzbeschreibung inhalt inhaltsangabe
        dokument klappentext teaser referat
        texte texteintégral résumé contenu texto textocompleto resumen descripción contenido resumo
        descrição testo riassunto descrizione contenuto tekst samenvatting omschrijving inhoud
        sammanfattning beskrivning innehåll tiivistelmä kuvaus sisältö teksti sammendrag
        streszczenie opis abstrakt popis shrnutí összefoglalás leírás rezumat descriere
    """,
    "labels": """
        label labels subject subjects subjectheading subjectheadings subjectterms headings
        keyword keywords tag tags category categories topic topics descriptor descriptors
        indexterm indexterms concept concepts class classes code codes theme themes meshterms
        schlagwort schlagwörter schlagwoerter schlagworte stichwort stichwörter stichworte
        productcategory productcategories categorypath producttype googleproductcategory
        breadcrumb breadcrumbs hscode cncode tariffcode commoditycode taric warennummer
        zolltarifnummer warengruppe warengruppen produktkategorie produktkategorien produktgruppe
        kategorie kategorien thema themen deskriptor deskriptoren sachgruppe sachgruppen klasse
        klassen klassifikation sachschlagwort sachschlagwörter rswk gnd
        motclé motsclés motsclefs sujet sujets matière matières catégorie catégories étiquette
        étiquettes thème thèmes descripteurs
        palabraclave palabrasclave materia materias etiqueta etiquetas categoría categorías tema
        temas descriptores soggetto soggetti parolachiave parolechiave categoria categorie etichette
        palavrachave palavraschave assunto assuntos categorias
        trefwoord trefwoorden onderwerp onderwerpen categorieën
        nyckelord ämnesord ämne ämnen avainsana avainsanat asiasana asiasanat aihe aiheet
        emneord nøkkelord słowakluczowe hasłaprzedmiotowe klíčováslova předmětováhesla
        kulcsszavak tárgyszavak cuvintecheie
    """,
    "id": """
        id ids identifier identifiers docid documentid recordid articleid uid uuid guid key
        number nr no ppn idn doi mmsid oclc nummer kennung identifikator dokumentnummer
        datensatznummer sku ean gtin isbn issn asin itemid itemnumber productid productnumber
        articlenumber partnumber artikelnummer artikelnr produktnummer bestellnummer zdbid
        identifiant numéro identificador número identificatore identificativo
        numero tunniste recordnumber accessionnumber signatur signature
    """,
}
# What may stand beside a name and does not change what it means.
_LANGUAGES = "de|en|fr|es|it|nl|pt|fi|sv|ger|deu|eng|fre|fra"
_BESIDE = re.compile(rf"^(?:dc|dcterms|marc)[.: ]|[. \-]?[\[(]?\b(?:{_LANGUAGES})[\])]?$")


def plain_name(name: str) -> str:
    """Letters alone, without case and accents."""
    parts = unicodedata.normalize("NFKD", name.casefold())
    return "".join(c for c in parts if c.isalpha())


_ROLES: dict[str, Role] = {
    plain_name(name): role for role, names in _NAMES.items() for name in names.split()
}


@lru_cache(4096)  # a table's columns are asked for several times
def role_of(column: str) -> Role | None:
    """What a column holds, by its name; None where the name does not tell.

    Examples
    --------
    >>> role_of("Schlagwörter"), role_of("dc.subject[en]"), role_of("KEYWORD_2"), role_of("Jahr")
    ('labels', 'labels', 'labels', None)
    """
    name = column.casefold().strip().replace("_", " ")
    bare = _BESIDE.sub("", _BESIDE.sub("", name))
    return _ROLES.get(plain_name(name)) or _ROLES.get(plain_name(bare))
