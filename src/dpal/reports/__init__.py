"""What was planned and done, for people: tables, figures, pages and certificates. Every ε is rounded up.

Reading order:

- `plain_words`, `assumptions`: what an ε and a δ mean, and what a promise assumes
- `epsilon_explanation`, `epsilon_table`: the same at length, before there is a plan
- `plan_table`, `campaign_table`: plans, status and verification in a terminal
- `figures`: the look of all figures; `plan_plot`, `campaign_plots`, `histogram_plot` draw them
- `html_pages`: Jinja2 templates (in `templates/`), always escaped
- `campaign_data`, `campaign_report`: the report of one campaign, as data and as a page
- `comparison`, `comparison_report`: several campaigns side by side
- `tracked_facts`, `mlflow_store`: what an experiment tracker is told, and where it goes
- `certificate`, `signature`: the document and who signed it; `certificate_pdf`, `certificate_files`: its two files
"""
