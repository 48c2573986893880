"""One table, described by each kind of codebook."""

from __future__ import annotations

import json
from pathlib import Path

ROWS = "age,score,sex,stage,smoker,seen,mail\n30,0.5,F,1,true,2020-05-01,a@b.example\n"

FRICTIONLESS = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120, "required": True}},
        {
            "name": "score",
            "type": "number",
            "constraints": {"minimum": 0, "maximum": 0.1e1, "required": True},
        },
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"], "required": True}},
        {
            "name": "stage",
            "type": "integer",
            "categories": [{"value": 1, "label": "low"}, {"value": 2, "label": "high"}],
            "categoriesOrdered": True,
            "constraints": {"required": True},
        },
        {"name": "smoker", "type": "boolean"},
        {
            "name": "seen",
            "type": "date",
            "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31", "required": True},
        },
        {"name": "mail", "type": "object"},
    ]
}
CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "url": "people.csv",
    "tableSchema": {
        "columns": [
            {
                "titles": "age",
                "datatype": {"base": "integer", "minimum": 0, "maximum": 120},
                "required": True,
            },
            {
                "titles": {"en": ["score"]},
                "datatype": {"base": "decimal", "minInclusive": "0", "maxInclusive": "1"},
                "required": True,
            },
            {"name": "sex", "datatype": {"base": "string", "format": "^(F|M)$"}, "required": True},
            {"name": "stage", "datatype": {"base": "string", "format": "1|2"}, "required": True},
            {"name": "smoker", "datatype": "boolean"},
            {
                "name": "seen",
                "datatype": {"base": "date", "minimum": "2020-01-01", "maximum": "2020-12-31"},
                "required": True,
            },
            {"name": "mail", "datatype": "anyURI"},
            {"name": "row", "virtual": True},
        ]
    },
}
EXPECTATIONS = {
    "expectation_suite_name": "people",
    "expectations": [
        {"expectation_type": f"expect_column_{kind}", "kwargs": {"column": column, **kwargs}}
        for column, kind, kwargs in [
            ("age", "values_to_be_of_type", {"type_": "int64"}),
            ("age", "values_to_be_between", {"min_value": 0, "max_value": 120}),
            ("age", "values_to_not_be_null", {}),
            ("score", "values_to_be_in_type_list", {"type_list": ["FLOAT", "int", "null"]}),
            ("score", "min_to_be_between", {"min_value": 0, "max_value": 0}),
            ("score", "max_to_be_between", {"min_value": 0, "max_value": 1}),
            ("score", "values_to_not_be_null", {"mostly": 1.0}),
            ("sex", "values_to_be_in_set", {"value_set": ["F", "M"]}),
            ("sex", "values_to_not_be_null", {}),
            ("stage", "values_to_be_in_set", {"value_set": [1, 2]}),
            ("stage", "values_to_not_be_null", {}),
            ("smoker", "values_to_be_in_set", {"value_set": [True, False]}),
            ("smoker", "values_to_not_be_null", {"mostly": 0.9}),
            ("seen", "values_to_be_between", {"min_value": "2020-01-01", "max_value": "2020-12-31"}),
            ("seen", "values_to_not_be_null", {}),
            ("seen", "values_to_be_unique", {"unheard": "of"}),
        ]
    ]
    + [{"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}}],
}
DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5"><dataDscr>
<var name="age" intrvl="contin" dcml="0"><labl>Age in years</labl>
  <valrng><range UNITS="INT" min="0" max="120"/></valrng><sumStat type="max">97</sumStat>
  <varFormat type="numeric"/></var>
<var name="score" dcml="2"><valrng><range UNITS="REAL" min="0" max="1"/></valrng>
  <varFormat type="numeric"/></var>
<var name="sex"><catgry><catValu>F</catValu><labl>female</labl></catgry><catgry><catValu>M</catValu></catgry>
  <varFormat type="character"/></var>
<var name="stage" nature="ordinal"><catgry><catValu>1</catValu><catStat type="freq">17</catStat></catgry>
  <catgry><catValu>2</catValu></catgry><varFormat type="numeric"/></var>
<var name="seen"><valrng><range min="2020-01-01" max="2020-12-31"/></valrng>
  <varFormat type="character" category="date"/></var>
</dataDscr></codeBook>
"""
DOMAIN = """\
age: {min_value: 0.0, max_value: 120.0, dtype: int, clip_to_range: true}
score: {type: NumericalAttribute, min_value: 0, max_value: 1, dtype: float}
sex: {possible_values: [F, M], out_of_domain_index: 1}
stage:
  possible_values:
  - 1
  - 2
smoker: {possible_values: [false, true]}
seen: {}
mail: {max_tokens: 256}
"""
SDV = {
    "METADATA_SPEC_VERSION": "V1",
    "tables": {
        "people": {
            "primary_key": "mail",
            "columns": {
                "age": {"sdtype": "numerical", "computer_representation": "Int64"},
                "score": {"sdtype": "numerical"},
                "sex": {"sdtype": "categorical"},
                "stage": {"sdtype": "categorical", "order": ["1", "2"]},
                "smoker": {"sdtype": "boolean"},
                "seen": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
                "mail": {"sdtype": "email", "pii": True},
            },
        }
    },
}
PLAIN = """\
Name;Type;Min;Max;Categories;Nullable;Label
age;integer;0;120;;no;Age in years
score;number;0;1;;no;
sex;category;;;F|M;no;
stage;ordinal;;;1, 2;no;
smoker;boolean;;;;;
s*n;date;2020-01-01;2020-12-31;;no;
mail;id;;;;;
"""


def book(name: str, content: object) -> str:
    Path(name).write_text(content if isinstance(content, str) else json.dumps(content))
    return name
